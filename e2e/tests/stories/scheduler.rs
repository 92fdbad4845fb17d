//! Somebody changes the configuration of a scheduler, and sees which pods it decided and why.

mod change;
mod links;
mod nowhere;
mod readme;
mod refused;
mod restart;
mod story;

use std::fs;

use kubewake_e2e::{
    TraceReceiver, TracedCluster,
    process::{ChildProcess, example, workspace},
    traced_cluster::ADMINISTRATORS_GROUP,
    traces::ExportedSpan,
};
use kubewake_release::ReleaseImage;

/// The groups that the API server believes: who types, the operator and its schedulers.
const TRUSTED: [&str; 2] = [ADMINISTRATORS_GROUP, "system:serviceaccounts:scheduler-system"];
/// Who makes spans beside the API server and the webhook, which also stamps pods of others.
const OURS: [&str; 2] = ["scheduler-operator", "demo-scheduler"];
/// The kinds on which contexts are stamped.
const KINDS: [&str; 2] = ["demo.kubewake.io/v1alpha1/schedulers", "v1/pods"];
/// The span of a change of a Scheduler that is there.
const CHANGE: &str = "PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/schedulers/{:name}";

/// A file of the example.
fn file(name: &str) -> String {
    fs::read_to_string(workspace().join("examples/scheduler/deploy").join(name)).unwrap()
}

/// A trace as the README shows it.
fn shown(number: usize) -> String {
    let text = fs::read_to_string(workspace().join("examples/scheduler/README.md")).unwrap();
    whole(text.split("```text\n").nth(number + 1).unwrap().split("```").next().unwrap())
}

/// A text with whole paths.
fn whole(text: &str) -> String {
    let groups = [
        ("DEMO", "/apis/demo.kubewake.io/v1alpha1"),
        ("CORE", "/api/v1"),
        ("APPS", "/apis/apps/v1"),
        ("EVENTS", "/apis/events.k8s.io/v1"),
    ];
    groups.iter().fold(text.to_owned(), |text, (short, path)| {
        text.replace(&format!(" {short}/"), &format!(" {path}/namespaces/{{:namespace}}/"))
    })
}

/// A cluster of three nodes in which the operator runs as a pod, and where contexts are stamped.
struct Scene {
    traced: TracedCluster,
    webhook: ChildProcess,
}

impl Scene {
    fn start() -> Option<Self> {
        Self::start_with(&TRUSTED, &[])
    }

    /// On an API server that believes these groups, with these arguments of the operator.
    fn start_with(trusted: &[&str], more: &[&str]) -> Option<Self> {
        let program = example("demo-scheduler").get_program().to_owned();
        let image = format!("{}={}", ReleaseImage::DemoScheduler.reference(), program.to_str().unwrap());
        let args = ["--nodes", "3", "--image", &image, "--image", "example/shell=/bin/sh"];
        let traced = TracedCluster::start(&args, trusted)?;
        let webhook = traced.start_webhook(&KINDS, &[]);
        let kubectl = &traced.kubectl;
        kubectl.run_ok("wait --for=condition=Ready nodes --all --timeout=60s");
        kubectl.run_ok_with("apply -f -", &file("crds.yaml"));
        kubectl.run_ok("wait --for=condition=Established crd/schedulers.demo.kubewake.io --timeout=60s");
        // As it is deployed, but that its spans come here, and soon.
        let here =
            format!("http://{}\"}}\n        - {{name: OTEL_BSP_SCHEDULE_DELAY, value: \"100", traced.traces.grpc());
        let operator = file("operator.yaml").replace("http://kubewake-otlp.kubewake-system:4317", &here);
        let operator = operator.replace("[operator]", &format!("[{}]", [&["operator"], more].concat().join(", ")));
        kubectl.run_ok_with("apply -f - --namespace scheduler-system", &operator);
        kubectl.run_ok("rollout status deployment/scheduler-operator --namespace scheduler-system --timeout=60s");
        Some(Self { traced, webhook })
    }

    /// Applies a Scheduler with these scores, and waits until the scheduler decides by them.
    fn configure(&self, probe: bool, scores: &str) -> String {
        self.apply(probe, scores);
        let generation = self.field(".metadata.generation");
        let observed =
            format!("wait --for=jsonpath={{.status.observedGeneration}}={generation} {SCHEDULER} --timeout=60s");
        self.traced.kubectl.run_ok(&observed);
        self.traced.kubectl.run_ok(&format!("wait --for=condition=Ready {SCHEDULER} --timeout=60s"));
        self.field(".status.running.revision")
    }

    fn apply(&self, probe: bool, scores: &str) {
        let changed = file("sample.yaml").replace("  - {name: LeastAllocated}\n", scores);
        let changed = changed.replace("probe: true", &format!("probe: {probe}"));
        self.traced.kubectl.run_ok_with("apply -f - --namespace scheduler-system", &changed);
    }

    /// A field of the Scheduler.
    fn field(&self, path: &str) -> String {
        self.traced.kubectl.field(SCHEDULER, path)
    }

    /// Creates a pod that asks for so much cpu, with these annotations.
    fn pod(&self, name: &str, cpu: &str, annotations: &str) {
        let metadata = format!("{{name: {name}, annotations: {{{annotations}}}}}");
        let pod = file("pod.yaml").replace("{name: web}", &metadata).replace("100m", cpu);
        self.traced.kubectl.run_ok_with("create -f -", &pod);
    }

    /// The node that a pod got.
    fn node(&self, pod: &str) -> String {
        let kubectl = &self.traced.kubectl;
        kubectl.run_ok(&format!("wait --for=condition=PodScheduled pod/{pod} --timeout=60s"));
        kubectl.field(&format!("pod {pod}"), ".spec.nodeName")
    }

    /// Ends everything; all that anybody had to say is said then.
    fn end(self) -> TraceReceiver {
        let Self { traced, mut webhook } = self;
        let traces = traced.stop();
        webhook.signal("TERM");
        assert!(webhook.wait_for_exit().success(), "{}", webhook.stderr());
        traces
    }

    /// Waits for what the scheduler says of a pod in a span of its own.
    fn attempt(&self, pod: &str, result: &str) -> ExportedSpan {
        let is_it =
            |span: &ExportedSpan| span.attribute("k8s.pod.name") == pod && span.attribute("scheduler.result") == result;
        self.traced.traces.wait_for_span("SchedulePod", is_it)
    }
}

/// The Scheduler of the stories.
const SCHEDULER: &str = "scheduler/demo --namespace scheduler-system";
const FIRST: &str = "  - {name: LeastAllocated}\n";
const SECOND: &str = "  - {name: LeastAllocated}\n  - {name: NodeLabel, weight: 5, label: disk=ssd}\n";
