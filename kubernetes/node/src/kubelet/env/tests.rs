use std::fs;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::*;
use crate::kubelet::testing::KubeletFixture;

/// The program of the test image, with an argument of its own.
fn program() -> ImageEntrypoint {
    ImageEntrypoint::new("/opt/app/server").arg("serve")
}

fn services() -> Vec<Arc<Service>> {
    let service = |name: &str, ip: &str| {
        json!({"metadata": {"name": name}, "spec": {"clusterIP": ip, "ports": [
            {"name": "http-api", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"},
        ]}})
    };
    [service("my-db", "127.20.240.5"), service("headless", "None"), service("kubernetes", "127.20.240.1")]
        .map(|one| Arc::new(serde_json::from_value(one).unwrap()))
        .to_vec()
}

struct Started {
    launch: ProcessSpec,
    root: PathBuf,
}

impl Started {
    fn get(&self, name: &str) -> Option<&str> {
        self.launch.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

async fn start(world: &KubeletFixture, name: &str, container: Value, spec: Value) -> Result<Started, ConfigError> {
    let pod = world.pod(name, container, spec).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let program = program();
    let services = services();
    let inputs = ContainerInputs {
        pod: &pod,
        container: &pod.spec.as_ref().unwrap().containers[0],
        program: &program,
        node: &world.node,
        pod_ip: [127, 20, 0, 7].into(),
        volumes: &volumes,
        services: &services,
        sources: &world.sources,
    };
    Ok(Started { launch: resolve_process_spec(&inputs).await?, root: volumes.root("main") })
}

#[tokio::test]
async fn variables_come_from_everywhere_in_kubernetes_order() {
    let world = KubeletFixture::new().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"A": "map", "B": "map"}})).await;
    world.make::<Secret>(json!({"metadata": {"name": "key"}, "stringData": {"B": "secret"}})).await;
    let container = json!({
        "envFrom": [
            {"configMapRef": {"name": "app"}}, {"secretRef": {"name": "key"}},
            {"prefix": "P_", "configMapRef": {"name": "app"}}, {"secretRef": {"name": "none", "optional": true}},
        ],
        "env": [
            {"name": "A", "value": "own"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "URL", "value": "http://$(POD_IP):$(MY_DB_SERVICE_PORT)/$(LATER)$$(A)"},
            {"name": "LATER", "value": "x"},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "B"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "key", "key": "none", "optional": true}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "EMPTY"},
            {"name": "KUBEWAKE_ROOT", "value": ""},
            {"name": "FILE", "value": "$(KUBEWAKE_ROOT)/etc/app"},
        ],
    });
    let started = start(&world, "web", container, json!({})).await.unwrap();
    let file = started.root.join("etc/app");
    for (name, value) in [
        ("A", "own"),
        ("B", "secret"),
        ("P_A", "map"),
        ("URL", "http://127.20.0.7:80/$(LATER)$(A)"),
        ("KEY", "secret"),
        ("CPU", "4000"),
        ("EMPTY", ""),
        ("FILE", file.to_str().unwrap()),
        ("KUBEWAKE_ROOT", started.root.to_str().unwrap()),
        ("HOSTNAME", "web"),
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/root"),
        ("TMPDIR", started.root.join("tmp").to_str().unwrap()),
    ] {
        assert_eq!(started.get(name), Some(value), "{name}");
    }
    assert_eq!(started.get("NONE"), None);
    assert_eq!(started.get("CARGO_MANIFEST_DIR"), None);
    assert!(!format!("{:?}", started.launch).contains("secret"));
}

#[tokio::test]
async fn services_are_told_and_the_api_server_where_it_really_is() {
    let world = KubeletFixture::new().await;
    let port = world.server.address().port().to_string();
    let started = start(&world, "web", json!({}), json!({})).await.unwrap();
    for (name, value) in [
        ("MY_DB_SERVICE_HOST", "127.20.240.5"),
        ("MY_DB_SERVICE_PORT", "80"),
        ("MY_DB_SERVICE_PORT_HTTP_API", "80"),
        ("MY_DB_PORT", "tcp://127.20.240.5:80"),
        ("MY_DB_PORT_80_TCP", "tcp://127.20.240.5:80"),
        ("MY_DB_PORT_80_TCP_PROTO", "tcp"),
        ("MY_DB_PORT_80_TCP_PORT", "80"),
        ("MY_DB_PORT_80_TCP_ADDR", "127.20.240.5"),
        ("MY_DB_PORT_53_UDP", "udp://127.20.240.5:53"),
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", &port),
        ("KUBERNETES_SERVICE_PORT_HTTPS", &port),
    ] {
        assert_eq!(started.get(name), Some(value), "{name}");
    }
    assert_eq!((started.get("HEADLESS_SERVICE_HOST"), started.get("KUBERNETES_PORT_53_UDP")), (None, None));
    assert!(started.get("KUBECONFIG").unwrap().ends_with("/containers/main/kubeconfig"));
    let spec = json!({"enableServiceLinks": false, "automountServiceAccountToken": false, "hostname": "other"});
    let started = start(&world, "alone", json!({}), spec).await.unwrap();
    assert_eq!((started.get("MY_DB_SERVICE_HOST"), started.get("HOSTNAME")), (None, Some("other")));
    assert_eq!(started.get("KUBERNETES_SERVICE_PORT"), Some(&*port));
    assert_eq!(started.get("KUBECONFIG"), Some("/dev/null"));
}

#[tokio::test]
async fn what_is_missing_is_said_in_the_kubelets_words() {
    let world = KubeletFixture::new().await;
    world.make::<Secret>(json!({"metadata": {"name": "key"}, "data": {"binary": "/w=="}})).await;
    let from = |from: Value| json!({"env": [{"name": "A", "valueFrom": from}]});
    for (name, container, message) in [
        ("a", from(json!({"configMapKeyRef": {"name": "app", "key": "a"}})), "configmap \"app\" not found"),
        ("b", from(json!({"secretKeyRef": {"name": "none", "key": "a"}})), "secret \"none\" not found"),
        ("c", from(json!({"secretKeyRef": {"name": "key", "key": "a"}})), "couldn't find key a in Secret default/key"),
        ("d", json!({"envFrom": [{"configMapRef": {"name": "app"}}]}), "configmap \"app\" not found"),
        (
            "e",
            json!({"envFrom": [{"secretRef": {"name": "key"}}]}),
            "key binary in Secret default/key cannot be the value of an environment variable because it is not UTF-8 text; mount it as a file",
        ),
    ] {
        let error = start(&world, name, container, json!({})).await.err().unwrap();
        assert_eq!(error.to_string(), message);
        assert!(error.missing_source().is_some());
    }
}

#[tokio::test]
async fn a_command_is_found_in_the_root_then_on_the_node_then_in_the_image() {
    let world = KubeletFixture::new().await;
    let script = json!({"metadata": {"name": "tools"}, "data": {"run.sh": "#!/bin/sh\n"}});
    world.make::<ConfigMap>(script).await;
    let spec = json!({"volumes": [{"name": "tools", "configMap": {"name": "tools", "defaultMode": 0o755}}]});
    let tools = json!([{"name": "tools", "mountPath": "/tools"}]);
    let with = |more: Value| {
        let mut container = json!({"volumeMounts": tools});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        container
    };
    let root = |started: &Started, path: &str| started.root.join(path);
    let started = start(
        &world,
        "a",
        with(json!({"args": ["--at=$(HOSTNAME)", "--host=$(KUBERNETES_SERVICE_HOST)"]})),
        spec.clone(),
    );
    let started = started.await.unwrap();
    assert_eq!(started.launch.program, std::path::Path::new("/opt/app/server"));
    assert_eq!(started.launch.args, ["serve", "--at=$(HOSTNAME)", "--host=127.0.0.1"]);
    assert_eq!(started.launch.dir, started.root);
    for (name, command, dir, expected) in [
        ("b", "/tools/run.sh", None, Err("tools/run.sh")),
        ("c", "./run.sh", Some("/tools"), Err("tools/./run.sh")),
        ("d", "/bin/sh", None, Ok("/bin/sh")),
        ("e", "sh", None, Ok("sh")),
        ("f", "/usr/local/bin/server", None, Ok("/opt/app/server")),
        ("g", "server", None, Ok("/opt/app/server")),
        ("h", "/nowhere/else", None, Err("nowhere/else")),
    ] {
        let container = with(json!({"command": [command, "x"], "args": ["y"], "workingDir": dir}));
        let started = start(&world, name, container, spec.clone()).await.unwrap();
        let expected = expected.map_or_else(|inside| root(&started, inside), PathBuf::from);
        assert_eq!(
            (started.launch.program, started.launch.args),
            (expected, vec!["x".into(), "y".into()]),
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_working_directory_is_looked_for_and_made() {
    let world = KubeletFixture::new().await;
    for (name, dir, inside) in [("a", "/usr", false), ("b", "/srv/of/nobody", true), ("c", "/../..", true)] {
        let started = start(&world, name, json!({"workingDir": dir}), json!({})).await.unwrap();
        assert_eq!(started.launch.dir.starts_with(&started.root), inside, "{dir}");
        assert!(fs::metadata(&started.launch.dir).unwrap().is_dir());
    }
}

#[tokio::test]
async fn what_no_process_can_be_given_is_refused() {
    let world = KubeletFixture::new().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"A": "a\u{0}b"}})).await;
    let error = start(&world, "a", json!({"envFrom": [{"configMapRef": {"name": "app"}}]}), json!({})).await;
    assert_eq!(error.err().unwrap().to_string(), "variable \"A\": the value contains a zero byte; mount it as a file");
    let twice = |step: usize| json!({"name": format!("V{}", step + 1), "value": format!("$(V{step})$(V{step})")});
    let first = json!({"name": "V0", "value": "0123456789"});
    let env: Vec<Value> = std::iter::once(first).chain((0..40).map(twice)).collect();
    let error = start(&world, "b", json!({"env": env}), json!({})).await;
    assert!(matches!(error, Err(ConfigError::TooLong(_))));
}
