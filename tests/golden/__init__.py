"""Golden answers: what one version of the api answers to every read, against what another answers on the same rows."""
