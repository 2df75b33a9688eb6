# Citu as a container image. Two stages: the first one installs, the second one has neither pip nor a
# compiler. docs/operations.md says how to run it; compose.yaml and ops/kubernetes/ do.
FROM debian:bookworm-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/citu
# requirements-telemetry.txt: with what TRACES needs; requirements-analysis.txt, -charts.txt likewise.
ARG REQUIREMENTS=requirements.txt
COPY locks/${REQUIREMENTS} ./requirements.txt
ARG PIP_INDEX_URL
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-cache-dir --no-compile --disable-pip-version-check \
        --require-hashes -r requirements.txt \
    && /opt/venv/bin/python -m pip uninstall -y setuptools pip \
    && find /opt/venv -name '*.so*' -type f -exec strip --strip-unneeded '{}' +

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/citu citu \
    && install -d -o citu -g citu -m 0750 /var/lib/citu
COPY --from=build /opt/venv /opt/venv
WORKDIR /opt/citu
COPY . .
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/var/lib/citu \
    DATA_DIR=/var/lib/citu \
    HOST=0.0.0.0 \
    PORT=8084 \
    DRAIN_S=6 \
    GUNICORN_CMD_ARGS=--worker-tmp-dir=/dev/shm
USER 10001
# The only folders that are written, /tmp and /dev/shm besides: the root file system may be read-only.
VOLUME ["/var/lib/citu"]
EXPOSE 8084
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "ops/healthcheck.py"]
CMD ["gunicorn", "unified_api:app"]
