"""Which nodes a pod may run on, as the scheduler of Kubernetes decides it: for plans, and to say why one waits. Pure.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/;
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/.
"""
