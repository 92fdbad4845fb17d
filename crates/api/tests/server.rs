//! The definitions on an API server: accepted objects, and messages about refused ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{sync::LazyLock, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use kubewake_api::{
    crds,
    v1alpha1::{Telemetry, TracePipeline},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::{Value, json};

/// Longer than any step takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(30);

static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(crds);

struct World {
    _server: ApiServer,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let client = server.client().unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in CRDS.iter() {
            let name = crd.metadata.name.clone().unwrap();
            definitions.create(&PostParams::default(), crd).await.unwrap();
            let established = await_condition(definitions.clone(), &name, is_crd_established());
            tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
        }
        Self { _server: server, client }
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) -> Result<DynamicObject, String> {
        let crd = CRDS.iter().find(|crd| crd.spec.names.kind == kind).unwrap();
        let resource = ApiResource {
            group: crd.spec.group.clone(),
            version: "v1alpha1".into(),
            api_version: format!("{}/v1alpha1", crd.spec.group),
            kind: kind.into(),
            plural: crd.spec.names.plural.clone(),
        };
        let mut object = DynamicObject::new(name, &resource);
        object.data = json!({"spec": spec});
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        match api.create(&PostParams::default(), &object).await {
            Ok(created) => Ok(created),
            Err(kube::Error::Api(status)) => Err(status.message),
            Err(error) => panic!("{error}"),
        }
    }

    /// Asserts that an object is refused, with these words in the message.
    async fn refuses(&self, kind: &str, name: &str, spec: Value, words: &[&str]) {
        let message = self.create(kind, name, spec.clone()).await.expect_err(&format!("{spec} was taken"));
        for word in words {
            assert!(message.contains(word), "{word} is not in: {message}");
        }
    }
}

fn output(more: Value) -> Value {
    let mut otlp = json!({"endpoint": {"value": "backend:4317"}});
    otlp.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"output": {"otlp": otlp}})
}

fn tail(policy: Value) -> Value {
    let mut spec = output(json!({}));
    spec["sampling"] = json!({"tail": {"policies": [policy]}});
    spec
}

#[tokio::test]
async fn good_resources_are_taken_and_read_back() {
    let world = World::new().await;
    for file in ["smallest", "credentials", "selected", "sampled", "settings"] {
        let path = format!("{}/tests/golden/{file}.in.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        for object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            let kind = object["kind"].as_str().unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            if kind == "Telemetry" && file == "settings" {
                continue;
            }
            world.create(kind, name, object["spec"].clone()).await.unwrap();
        }
    }
    let pipelines: Api<TracePipeline> = Api::all(world.client.clone());
    let smallest = pipelines.get("backend").await.unwrap();
    assert_eq!(smallest.spec.output.otlp.unwrap().protocol, kubewake_api::v1alpha1::OtlpProtocol::Grpc);
    assert_eq!(pipelines.list(&ListParams::default()).await.unwrap().items.len(), 10);
    assert!(Api::<Telemetry>::all(world.client.clone()).get("default").await.is_ok());
}

#[tokio::test]
async fn bad_resources_are_refused_in_clear_words() {
    let world = World::new().await;
    let pipeline = "TracePipeline";
    let refuses = async |spec: Value, words: &[&str]| world.refuses(pipeline, "x", spec, words).await;
    refuses(json!({"output": {}}), &["spec.output", "an output must be set: `otlp`"]).await;
    refuses(json!({"output": {"otlp": {}}}), &["spec.output.otlp.endpoint: Required value"]).await;
    let exclusive = "set either `value` or `valueFrom`";
    refuses(output(json!({"endpoint": {}})), &["spec.output.otlp.endpoint", exclusive]).await;
    let both = json!({"value": "a", "valueFrom": {"secretKeyRef": {"name": "a", "namespace": "b", "key": "c"}}});
    refuses(output(json!({"endpoint": both})), &["spec.output.otlp.endpoint", exclusive]).await;
    let nowhere = json!({"valueFrom": {}});
    refuses(output(json!({"endpoint": nowhere})), &["valueFrom", "set either `secretKeyRef` or `configMapKeyRef`"])
        .await;
    let half = json!({"valueFrom": {"secretKeyRef": {"name": "a", "key": "c"}}});
    refuses(output(json!({"endpoint": half})), &["secretKeyRef.namespace: Required value"]).await;
    refuses(output(json!({"protocol": "udp"})), &["spec.output.otlp.protocol", "\"grpc\", \"http\""]).await;
    refuses(output(json!({"path": "/x"})), &["`path` is only allowed with `protocol: http`"]).await;
    refuses(
        output(json!({"tls": {"cert": {"value": "x"}}})),
        &["spec.output.otlp.tls", "set both `cert` and `key`, or neither"],
    )
    .await;
    let many =
        json!({"bearer": {"token": {"value": "x"}}, "basic": {"user": {"value": "x"}, "password": {"value": "x"}}});
    refuses(output(json!({"authentication": many})), &["set exactly one of `basic`, `oauth2` and `bearer`"]).await;
    refuses(output(json!({"authentication": {}})), &["set exactly one of `basic`, `oauth2` and `bearer`"]).await;
    refuses(output(json!({"headers": [{"name": "x"}]})), &["headers[0]", exclusive]).await;
    let space = json!({"headers": [{"name": "a b", "value": "x"}]});
    refuses(output(space), &["headers[0].name", "should match"]).await;
    refuses(output(json!({"timeout": "5"})), &["spec.output.otlp.timeout", "should match"]).await;
    refuses(output(json!({"queue": {"sizeBytes": 5}})), &["queue.sizeBytes", "1048576"]).await;
    let batch = json!({"queue": {"batch": {"minSizeBytes": 5, "maxSizeBytes": 4}}});
    refuses(output(batch), &["`minSizeBytes` must not be greater than `maxSizeBytes`"]).await;
    world
        .refuses(pipeline, &"x".repeat(64), output(json!({})), &["the name of a pipeline has at most 63 characters"])
        .await;
    world.refuses("Telemetry", "other", json!({}), &["the only Telemetry is named `default`"]).await;
    let replicas = json!({"replicas": {"min": 3, "max": 2}});
    world.refuses("Telemetry", "default", replicas, &["`min` must not be greater than `max`"]).await;
    let amount = json!({"resources": {"limits": {"memory": "much"}}});
    world.refuses("Telemetry", "default", amount, &["spec.resources.limits"]).await;
}

#[tokio::test]
async fn bad_selections_and_samplings_are_refused_in_clear_words() {
    let world = World::new().await;
    let with = |field: &str, value: Value| {
        let mut spec = output(json!({}));
        spec[field] = value;
        spec
    };
    let refuses = async |spec: Value, words: &[&str]| world.refuses("TracePipeline", "x", spec, words).await;
    let both = json!({"namespaces": {"include": ["a"], "exclude": ["b"]}});
    refuses(with("input", both), &["spec.input.namespaces", "set either `include` or `exclude`"]).await;
    refuses(with("input", json!({"namespaces": {"include": ["A"]}})), &["spec.input.namespaces.include[0]"]).await;
    let kind = json!({"workloads": {"include": [{"kind": "Node", "name": "a"}]}});
    refuses(with("input", kind), &["workloads.include[0].kind", "Deployment"]).await;
    // Conditions of another operator, which are texts.
    let foreign = json!([{"conditions": ["span.name == 'x'"]}]);
    refuses(with("filter", foreign), &["spec.filter[0]", "a filter without a condition would drop everything"]).await;
    refuses(with("sampling", json!({"percentage": 101})), &["spec.sampling.percentage", "100"]).await;
    refuses(with("sampling", json!({"tail": {"policies": []}})), &["spec.sampling.tail.policies"]).await;
    refuses(tail(json!({"name": "a"})), &["policies[0]", "a policy has exactly one rule"]).await;
    let two = json!({"name": "a", "alwaysSample": {}, "latency": {"thresholdMs": 5}});
    refuses(tail(two), &["policies[0]", "a policy has exactly one rule"]).await;
    let inner = json!({"name": "a", "and": {"andSubPolicy": [{"name": "b"}]}});
    refuses(tail(inner), &["andSubPolicy[0]", "a policy has exactly one rule"]).await;
    let logs = |filter: Value| json!({"filter": [filter], "output": {"otlp": {"endpoint": {"value": "backend:4317"}}}});
    let severity = logs(json!({"severityBelow": "WARN", "bodies": ["x"]}));
    world.refuses("LogPipeline", "x", severity, &["`severityBelow` must be the only condition of a filter"]).await;
    let with_runtime = |runtime: Value| json!({"input": {"runtime": runtime}, "output": {"otlp": {"endpoint": {"value": "backend:4317"}}}});
    let refuses_logs = async |spec: Value, words: &[&str]| world.refuses("LogPipeline", "x", spec, words).await;
    let both = json!({"namespaces": {"include": ["a"], "exclude": ["b"]}});
    refuses_logs(with_runtime(both), &["spec.input.runtime.namespaces", "set either `include` or `exclude`"]).await;
    let named = json!({"namespaces": {"include": ["a"], "system": true}});
    refuses_logs(with_runtime(named), &["spec.input.runtime.namespaces", "`system` cannot be combined"]).await;
    let words = ["spec.input.runtime.parse", "`message`, `severity` and `traceContext` need `json`"];
    refuses_logs(with_runtime(json!({"parse": {"json": false, "severity": true}})), &words).await;
    refuses_logs(with_runtime(json!({"multiline": "java"})), &["multiline", "\"auto\", \"none\""]).await;
    let url = json!({"endpoint": {"value": "https://backend"}});
    let one = "set exactly one of `otlp`, `loki`, `elasticsearch`, `opensearch` and `http`";
    refuses_logs(json!({"output": {}}), &["spec.output", one]).await;
    refuses_logs(json!({"output": {"loki": url, "opensearch": url}}), &["spec.output", one]).await;
    let index = json!({"endpoint": {"value": "https://backend"}, "index": "a", "dataStream": {}});
    for kind in ["elasticsearch", "opensearch"] {
        refuses_logs(json!({"output": {kind: index}}), &["set either `index` or `dataStream`"]).await;
    }
    let token = json!({"bearer": {"token": {"value": "x"}}});
    let key = json!({"endpoint": {"value": "https://b"}, "apiKey": {"value": "x"}, "authentication": token});
    refuses_logs(json!({"output": {"elasticsearch": key}}), &["set either `apiKey` or `authentication`"]).await;
    let etc = json!({"agent": {"linkedLogDirectories": ["/etc"]}});
    world.refuses("Telemetry", "default", etc, &["spec.agent.linkedLogDirectories[0]"]).await;
    world
        .refuses("MetricPipeline", "x", logs(json!({})), &["a filter without a condition would drop everything"])
        .await;
}
