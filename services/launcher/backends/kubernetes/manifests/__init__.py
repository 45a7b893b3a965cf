"""An order as Kubernetes objects (pure): Job, ConfigMap, Secrets and Services."""
