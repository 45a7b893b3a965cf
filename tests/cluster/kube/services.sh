# The images of deploy/images/Dockerfile for the real node of `cluster`, local/resolute-<target>:test: built on
# local/python:3.11 by the Docker of the machine or, where none answers, by one that ends with this command. What that one
# keeps for the next time is in $IMAGES/docker.

SERVICES=(api scheduler logs launcher tools postgres nats)

service_images() {
  install_packages docker.io
  have_images
  in_work_folder "$IMAGES/services.log" build_services
  say "${SERVICES[*]/#/local/resolute-} have the tag test"
}

build_services() {
  local target
  # Debian's own program brings BuildKit, which builds nothing but the target; others can want a plugin for it.
  export PATH=/usr/bin:$PATH DOCKER_BUILDKIT=1
  if ! docker info >/dev/null 2>&1; then
    export DOCKER_HOST=unix://$PWD/docker.sock
    dockerd -H "$DOCKER_HOST" --data-root "$IMAGES/docker" --exec-root "$PWD/docker" --pidfile "$PWD/docker.pid" \
      --bridge=none --iptables=false > dockerd.log 2>&1 &
    dockerd=$!
    trap 'kill "$dockerd" && wait "$dockerd" || true; umount "$IMAGES/docker" 2>/dev/null || true' EXIT
    wait_for 30 docker info
  fi
  docker image inspect local/python:3.11 >/dev/null 2>&1 || docker load -q -i "$IMAGES/images.tar"
  for target in "${SERVICES[@]}"; do
    docker build -q --network=host --build-arg BASE=local/python:3.11 ${PIP_INDEX_URL:+--build-arg PIP_INDEX_URL} \
      --target "$target" -t "local/resolute-$target:test" -f "$HERE/../../../deploy/images/Dockerfile" "$HERE/../../.."
  done
  ! runs "$RUN/containerd.pid" || docker save $(printf 'local/resolute-%s:test ' "${SERVICES[@]}") | load -
}
