# The container image of Ebbtide; docs/deploying.md describes how to run it.
#
# The first stage installs into a virtual environment. The second copies only that environment, so the image contains
# neither sources nor build tools. Both use the same base, because a virtual environment contains the path of its
# interpreter.

ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /opt/ebbtide
# Install the dependencies and the multilingual embedder first: this layer is rebuilt only when pyproject.toml changes.
COPY pyproject.toml ./
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*p['dependencies'], *p['optional-dependencies']['embeddings-multilingual'], *p['optional-dependencies']['cluster'], sep='\n')" > requirements.txt
RUN /opt/ebbtide/bin/pip install --requirement requirements.txt
# The web view. Node is needed only here, in an environment that is not copied.
COPY build_view.py ./
COPY clients/typescript/src ./clients/typescript/src
COPY web ./web
RUN python -m venv tools && tools/bin/python build_view.py
COPY README.md LICENSE hatch_build.py ./
COPY service ./service
COPY clients/python/src ./clients/python/src
RUN /opt/ebbtide/bin/pip install --no-deps .

FROM ${BASE}
LABEL org.opencontainers.image.title="ebbtide" \
      org.opencontainers.image.description="A memory daemon for AI agents" \
      org.opencontainers.image.licenses="Apache-2.0"
# USER below is numeric, so that an orchestrator can verify that it is not root.
RUN groupadd --system --gid 10001 ebbtide \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/ebbtide --no-create-home --shell /usr/sbin/nologin ebbtide \
 && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/ebbtide
COPY --from=build /opt/ebbtide /opt/ebbtide
# The daemon listens on 127.0.0.1 of the container. To make it reachable, set EBBTIDE_SERVER__HOST and
# EBBTIDE_SERVER__ALLOW_INSECURE, as docker-compose.yml does.
ENV PATH=/opt/ebbtide/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    EBBTIDE_STORE__DATA_DIR=/var/lib/ebbtide \
    EBBTIDE_LOG__FORMAT=json
VOLUME ["/var/lib/ebbtide"]
EXPOSE 8420 8421
USER 10001:10001
# Ready and degraded both count as healthy: without its model server the daemon still accepts batches and answers
# recalls. The check ignores proxy settings of the environment.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:%s/readyz' % os.environ.get('EBBTIDE_SERVER__REST_PORT', '8420'), timeout=4)"]
STOPSIGNAL SIGTERM
# Exec form, so that the daemon itself receives SIGTERM.
CMD ["ebbtide", "serve"]
