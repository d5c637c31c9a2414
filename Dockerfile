# The service as an image:
#
#   docker build -t meshhub .
#   docker run --init --read-only --tmpfs /tmp:size=4g --cap-drop ALL --security-opt no-new-privileges \
#              --stop-timeout 45 -v meshhub-data:/data -p 127.0.0.1:8000:8000 meshhub
#
# --init buries the orphans of plug-ins that start daemons.
#
#   docker exec NAME meshhub keys create --plan pro --label acme
#
# Uploads lie in /tmp while a request lasts; keys, unless a database is named, in /data.

FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY docs/man docs/man
RUN python -m venv /opt/meshhub && /opt/meshhub/bin/pip install --no-cache-dir ".[all]"

FROM python:3.13-slim
# what the CAD and repair libraries load
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgl1 libopengl0 libgomp1 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin meshhub \
    && install -d -o meshhub -g meshhub -m 0700 /data
# with pymeshlab, which is GPL-3.0: the image is distributed under its terms; without it, omit the extra meshlab
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
