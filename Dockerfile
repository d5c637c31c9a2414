# The service, and the workers of a cluster, as an image:
#
#   docker build -t meshhub .
#   docker run --init --read-only --tmpfs /tmp:size=4g --cap-drop ALL --security-opt no-new-privileges \
#              --stop-timeout 45 -v meshhub-data:/data -p 127.0.0.1:8000:8000 meshhub
#
# --init buries the orphans of plug-ins that start daemons.
#
#   docker exec NAME meshhub keys create --plan pro --label acme
#
# Uploads lie in /tmp while a request lasts; keys and jobs, unless databases are named, in /data.
#
# Arguments:
#   PYTHON_IMAGE     pin it by digest: --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:…
#   LOCK             requirements.txt, or requirements-all.txt with CAD files and pymeshlab. That is GPL-3.0, and the
#                    image is then distributed under its terms.
#   SYSTEM_PACKAGES  libraries that requirements-all.txt loads: "libgl1 libopengl0 libgomp1"

ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
ARG LOCK=requirements.txt
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY deploy deploy
COPY src src
COPY docs/man docs/man
RUN deploy/install-tree /opt/meshhub deploy/${LOCK}

FROM ${PYTHON_IMAGE}
ARG SYSTEM_PACKAGES=""
RUN if [ -n "${SYSTEM_PACKAGES}" ]; then apt-get update \
    && apt-get install -y --no-install-recommends ${SYSTEM_PACKAGES} \
    && rm -rf /var/lib/apt/lists/*; fi
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin meshhub \
    && install -d -o meshhub -g meshhub -m 0700 /data
COPY --from=build /opt/meshhub /opt/meshhub
ENV PATH=/opt/meshhub/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_DATA_HOME=/data \
    MESHHUB_TEMPORARY_FOLDER=/tmp \
    MESHHUB_LOG=json
USER meshhub
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health/ready', timeout=9)"]
CMD ["meshhub", "serve", "--host", "0.0.0.0", "--port", "8000"]
