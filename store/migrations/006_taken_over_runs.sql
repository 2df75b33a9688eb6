-- A run may be taken over any number of times, and is given up when that happens too often.

ALTER TABLE citu.run
    ADD takeovers integer NOT NULL DEFAULT 0;  -- since it was begun or answered
