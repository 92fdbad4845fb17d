//! The objects as golden files, and as an API server accepts them.

use std::{collections::BTreeMap, fs, path::Path};

use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::api::{Patch, PatchParams, ValidationDirective};
use kubewake_api::{
    CollectorSettings, ResolvedReferences, TelemetryPipeline, ValidPipeline,
    v1alpha1::{TelemetrySpec, TracePipeline},
    validate,
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::json;

use super::*;
use crate::{
    objects::{apply::ServerSideApplier, object_cache::ObjectCacheWriter},
    runtime::resync_trigger::ResyncTrigger,
};

const NAMESPACE: &str = "default";

fn owner(kind: &str, name: &str) -> OwnerReference {
    let api_version = if kind == "ConfigMap" { "v1" } else { "telemetry.kubewake.io/v1alpha1" };
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        ..OwnerReference::default()
    }
}

fn pipeline(name: &str, rest: Value) -> ValidPipeline {
    let mut spec = json!({"output": {"otlp": {
        "endpoint": {"value": "https://backend.example.com:4317"},
        "authentication": {"bearer": {"token": {"value": "planted-secret"}}},
    }}});
    if let (Some(spec), Value::Object(rest)) = (spec.as_object_mut(), rest) {
        spec.extend(rest);
    }
    let mut resource = TracePipeline::new(name, serde_json::from_value(spec).unwrap());
    (resource.metadata.uid, resource.metadata.generation) = (Some(format!("uid-of-{name}")), Some(1));
    let pipeline = TelemetryPipeline::from(&resource);
    validate(&pipeline, &ResolvedReferences::new(), Timestamp::UNIX_EPOCH).unwrap()
}

fn around(spec: Value) -> BuildContext {
    let spec: TelemetrySpec = serde_json::from_value(spec).unwrap();
    BuildContext {
        namespace: NAMESPACE.into(),
        anchor: owner("ConfigMap", "kubewake-layer"),
        anchor_owners: vec![owner("TracePipeline", "backend")],
        settings: CollectorSettings::from_spec(&spec, NAMESPACE).unwrap(),
        image: "docker.io/kubewake/collector:1".into(),
    }
}

fn cases() -> Vec<(&'static str, BuildContext, CollectorConfigs)> {
    let render = |around: BuildContext, pipeline: ValidPipeline| {
        let layer = kubewake_api::render(&[pipeline], &around.settings).unwrap();
        (around, layer)
    };
    let tail =
        json!({"sampling": {"tail": {"policies": [{"name": "errors", "statusCode": {"statusCodes": ["ERROR"]}}]}}});
    let all = json!({
        "replicas": {"min": 3, "max": 5}, "scaling": {"cpuUtilization": 60},
        "resources": {"requests": {"cpu": "0.5"}, "limits": {"memory": "1024Mi"}},
        "sticky": {"replicas": 4, "resources": {"limits": {"memory": "2Gi"}}},
        "image": "registry.example.com/collector:1", "imagePullSecrets": [{"name": "registry"}],
        "receivers": {"opencensus": {"enabled": true}},
    });
    let cases = [
        ("default", render(around(json!({})), pipeline("backend", json!({})))),
        ("alone", render(around(json!({"enrichment": {"enabled": false}})), pipeline("backend", json!({})))),
        ("everything", render(around(all), pipeline("backend", tail))),
    ];
    cases.into_iter().map(|(name, (around, layer))| (name, around, layer)).collect()
}

fn all(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let mut all = vec![values_secret(around, names::GATEWAY, &layer.secrets, &BTreeMap::new())];
    all.extend(document_objects(around, layer));
    all.extend(layer_objects(around, layer));
    all
}

/// The agents, in a namespace of their own.
fn agents() -> (BuildContext, Vec<DesiredObject>) {
    let settings = json!({
        "agent": {
            "resources": {"limits": {"memory": "384Mi"}},
            "linkedLogDirectories": ["/var/lib/docker/containers"],
        },
        "imagePullSecrets": [{"name": "registry"}],
    });
    let around = BuildContext {
        namespace: "kubewake-agents".to_owned(),
        anchor_owners: vec![owner("LogPipeline", "logs")],
        ..around(settings)
    };
    let mut objects = agent_rights(&around);
    objects.extend(agent_objects(&around));
    (around, objects)
}

fn compare_golden(name: &str, objects: &[DesiredObject]) {
    let text: Vec<String> = objects.iter().map(|it| serde_saphyr::to_string(&it.value).unwrap()).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.yaml"));
    let text = text.join("---\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "UPDATE_GOLDEN=1 writes {}", path.display());
}

#[test]
fn objects_look_like_this() {
    for (name, around, layer) in cases() {
        compare_golden(name, &layer_objects(&around, &layer));
    }
    compare_golden("agents", &agents().1);
}

#[test]
fn agents_mount_directories_of_their_node_and_write_only_to_their_own() {
    let (_, objects) = agents();
    let set = objects.iter().find(|it| it.kind == ObjectKind::DaemonSet).unwrap();
    let pod = set.value.pointer("/spec/template/spec").unwrap();
    let container = &pod["containers"][0];
    let mounted = |name: &str| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts.iter().find(|mount| mount["name"] == name).unwrap()
    };
    let volumes = pod["volumes"].as_array().unwrap();
    let of_node = volumes.iter().filter(|volume| volume.get("hostPath").is_some());
    let writable: Vec<&str> = of_node
        .map(|volume| volume["name"].as_str().unwrap())
        .filter(|name| mounted(name).get("readOnly") != Some(&json!(true)))
        .collect();
    assert_eq!(writable, ["state"]);
    assert_eq!(container["securityContext"]["runAsNonRoot"], true);
    assert_eq!(container["securityContext"]["runAsGroup"], 0, "kubelets let this group read logs");
    let init = &pod["initContainers"][0]["securityContext"]["capabilities"];
    assert_eq!(*init, json!({"drop": ["ALL"], "add": ["CHOWN", "FOWNER"]}));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert!(pod.get("hostNetwork").is_none() && pod.get("hostPID").is_none());
}

#[test]
fn agents_go_with_the_pipelines_that_read_logs() {
    let (around, objects) = agents();
    for desired in &objects {
        let is_cluster_scoped = desired.kind.is_cluster_scoped();
        let owners = if is_cluster_scoped { json!(around.anchor_owners) } else { json!([around.anchor]) };
        assert_eq!(desired.value["metadata"]["ownerReferences"], owners, "{}", desired.name);
        let namespace = desired.value["metadata"].get("namespace");
        assert_eq!(namespace, (!is_cluster_scoped).then(|| json!("kubewake-agents")).as_ref());
    }
}

#[test]
fn all_of_it_goes_with_the_pipelines_that_keep_it() {
    for (name, around, layer) in cases() {
        for desired in all(&around, &layer) {
            let owners =
                if desired.kind.is_cluster_scoped() { json!(around.anchor_owners) } else { json!([around.anchor]) };
            assert_eq!(desired.value["metadata"]["ownerReferences"], owners, "{name}: {}", desired.name);
        }
    }
    let around = around(json!({}));
    assert_eq!(
        anchor_object(NAMESPACE, &around.anchor_owners).value["metadata"]["ownerReferences"],
        json!(around.anchor_owners)
    );
}

#[test]
fn while_nothing_flows_there_is_an_address_and_no_more() {
    let (_, around, layer) = cases().remove(0);
    let address = layer_objects(&around, &layer).into_iter().find(|it| it.name == names::OTLP_SERVICE).unwrap();
    assert_eq!(layer_objects(&around, &CollectorConfigs::default()), [address], "and it is the same one");
}

#[test]
fn a_secret_is_in_no_other_object() {
    for (name, around, layer) in cases() {
        for desired in all(&around, &layer) {
            let text = desired.value.to_string();
            assert!(!text.contains("planted-secret"), "{name}: {:?} {}", desired.kind, desired.name);
            let hidden = serde_json::to_string(&ByteString(b"planted-secret".to_vec())).unwrap();
            assert_eq!(text.contains(hidden.trim_matches('"')), desired.kind == ObjectKind::Secret);
        }
    }
}

#[test]
fn replicas_of_the_gateway_are_not_ours() {
    for (_, around, layer) in cases() {
        let gateway = layer_objects(&around, &layer).into_iter().find(|it| it.kind == ObjectKind::Deployment).unwrap();
        assert!(gateway.value.pointer("/spec/replicas").is_none());
    }
}

#[test]
fn a_document_or_a_secret_that_changes_changes_no_workload() {
    let around = around(json!({}));
    let of = |valid| kubewake_api::render(&[valid], &around.settings).unwrap();
    let paths = json!({"output": {"otlp": {"endpoint": {"value": "https://other.example.com:4317"}}}});
    let one = of(pipeline("backend", json!({})));
    let two = of(pipeline("backend", paths));
    assert_ne!(document_objects(&around, &one), document_objects(&around, &two));
    assert_eq!(layer_objects(&around, &one), layer_objects(&around, &two));
}

#[tokio::test]
async fn an_api_server_takes_all_of_it_and_nothing_is_sent_twice() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    for (name, around, layer) in cases() {
        let live = ObjectCacheWriter::new([], ResyncTrigger::default());
        let applier = ServerSideApplier::new(client.clone(), NAMESPACE, live);
        let strict = PatchParams {
            field_validation: Some(ValidationDirective::Strict),
            dry_run: true,
            ..PatchParams::apply("strict").force()
        };
        let mut all = all(&around, &layer);
        all.push(anchor_object(NAMESPACE, &around.anchor_owners));
        // The embedded API server has no such kind.
        all.retain(|desired| desired.kind != ObjectKind::PodMonitor);
        if name == "default" {
            let in_default = |mut desired: DesiredObject| {
                if !desired.kind.is_cluster_scoped() {
                    desired.value["metadata"]["namespace"] = json!(NAMESPACE);
                }
                desired
            };
            let agents = agents().1.into_iter().filter(|it| it.name == names::AGENT).map(in_default);
            all.extend(agents);
        }
        for desired in &mut all {
            // The owners do not exist, and the garbage collector would notice.
            desired.value["metadata"]["ownerReferences"] = json!([]);
        }
        for desired in &all {
            let api = desired.kind.api(&client, NAMESPACE);
            let answer = api.patch(&desired.name, &strict, &Patch::Apply(&desired.value)).await;
            answer.unwrap_or_else(|error| panic!("{name}: {:?} {}: {error}", desired.kind, desired.name));
            assert!(applier.apply(desired).await.unwrap(), "{name}: {:?} is new or changed", desired.kind);
            assert!(
                !applier.apply(desired).await.unwrap(),
                "{name}: {:?} {} is as it should be",
                desired.kind,
                desired.name
            );
        }
        for desired in &all {
            applier.delete(desired.kind, &desired.name).await.unwrap();
        }
    }
}

#[test]
fn values_that_a_document_names_stay_beside_new_ones() {
    let value = |text: &str| ByteString(text.as_bytes().to_vec());
    let data = BTreeMap::from([("old".to_owned(), value("1")), ("older".to_owned(), value("2"))]);
    let live = Secret { data: Some(data), ..Secret::default() };
    let text =
        BTreeMap::from([(names::CONFIG_FILE.to_owned(), "token: ${file:/etc/kubewake/secrets/older}".to_owned())]);
    let document = ConfigMap { data: Some(text), ..ConfigMap::default() };
    let keys = |all| retained_values(Some(&live), [&document].into_iter(), all).into_keys().collect::<Vec<_>>();
    assert_eq!(keys(true), ["old", "older"]);
    assert_eq!(keys(false), ["old", "older"], "a name in another name is rather kept");
    let document = ConfigMap::default();
    assert!(retained_values(Some(&live), [&document].into_iter(), false).is_empty());
}
