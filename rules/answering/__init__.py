"""What the rules say: classification, summaries, refusals, offers and talk."""
