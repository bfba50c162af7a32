# Ebbtide in a container: docs/deploying.md says how to run it.
#
# Two stages: the first one installs into a virtual environment, the second one takes that environment and
# nothing else, so neither sources nor what builds them are in the image. Both begin with the same base,
# because a virtual environment holds the path of its interpreter.

ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /opt/ebbtide
# Dependencies first: this layer is made anew only when pyproject.toml changes.
COPY pyproject.toml ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > requirements.txt
RUN /opt/ebbtide/bin/pip install --requirement requirements.txt
COPY README.md LICENSE ./
COPY service ./service
COPY clients/python/src ./clients/python/src
RUN /opt/ebbtide/bin/pip install --no-deps .

FROM ${BASE}
LABEL org.opencontainers.image.title="ebbtide" \
      org.opencontainers.image.description="A memory daemon for AI agents" \
      org.opencontainers.image.licenses="Apache-2.0"
# The user is named by number below, so that an orchestrator can see that it is not root.
RUN groupadd --system --gid 10001 ebbtide \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/ebbtide --no-create-home --shell /usr/sbin/nologin ebbtide \
 && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/ebbtide
COPY --from=build /opt/ebbtide /opt/ebbtide
# It listens on 127.0.0.1 of the container, as everywhere. Whoever puts something in front of it says so:
# EBBTIDE_SERVER__HOST and EBBTIDE_SERVER__ALLOW_INSECURE, as docker-compose.yml does.
ENV PATH=/opt/ebbtide/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    EBBTIDE_STORE__DATA_DIR=/var/lib/ebbtide \
    EBBTIDE_LOG__FORMAT=json
VOLUME ["/var/lib/ebbtide"]
EXPOSE 8420 8421
USER 10001:10001
# Ready or degraded is healthy: a daemon whose model server is away still accepts and recalls. No proxy of the
# environment stands between the check and the daemon.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:%s/readyz' % os.environ.get('EBBTIDE_SERVER__REST_PORT', '8420'), timeout=4)"]
STOPSIGNAL SIGTERM
# A list, not a line for a shell: the daemon itself receives SIGTERM.
CMD ["ebbtide", "serve"]
