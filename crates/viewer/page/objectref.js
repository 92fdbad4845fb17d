// Which Kubernetes object a span is about, by the names that the trail library and the semantic conventions have.

const KINDS = [
  ['k8s.pod.name', 'Pod'],
  ['k8s.deployment.name', 'Deployment'],
  ['k8s.statefulset.name', 'StatefulSet'],
  ['k8s.daemonset.name', 'DaemonSet'],
  ['k8s.job.name', 'Job'],
  ['k8s.cronjob.name', 'CronJob'],
];

/** `{kind, namespace, name, generation}`, or null. */
export function objectOf(attributes) {
  const value = (key) => attributes.find((attribute) => attribute.key === key)?.value;
  const text = (key) => (typeof value(key) === 'string' && value(key) ? value(key) : null);
  const namespace = text('k8s.namespace.name') ?? '';
  if (text('k8s.object.kind') && text('k8s.object.name')) {
    return { kind: text('k8s.object.kind'), namespace, name: text('k8s.object.name'), generation: value('k8s.object.generation') };
  }
  const [key, kind] = KINDS.find(([name]) => text(name)) ?? [];
  return key ? { kind, namespace, name: text(key) } : null;
}
