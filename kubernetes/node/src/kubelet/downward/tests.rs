use serde_json::json;

use super::*;
use crate::kubelet::testing::node_facts;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "1234",
            "labels": {"app": "web", "tier.example.com/x": "y"},
            "annotations": {"note": "two\nlines, \"quoted\" and \\ and ü\u{1}"},
        },
        "spec": {"containers": [
            {"name": "main", "resources": {
                "limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "250m", "memory": "1000001"},
            }},
            {"name": "plain"},
        ]},
    }))
    .unwrap()
}

fn read(path: &str) -> Result<String, String> {
    resolve_field_ref(&pod(), &node_facts(), Some([127, 20, 0, 7].into()), path)
}

#[test]
fn a_pod_is_told_its_fields() {
    for (path, value) in [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "1234"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['tier.example.com/x']", "y"),
        ("metadata.labels['none']", ""),
        ("metadata.labels", "app=\"web\"\ntier.example.com/x=\"y\""),
        ("metadata.annotations", r#"note="two\nlines, \"quoted\" and \\ and ü\x01""#),
        ("spec.nodeName", "node-0"),
        ("spec.serviceAccountName", "default"),
        ("status.hostIP", "127.20.0.1"),
        ("status.podIP", "127.20.0.7"),
        ("status.podIPs", "127.20.0.7"),
    ] {
        assert_eq!(read(path).unwrap(), value, "{path}");
    }
    assert_eq!(read("spec.replicas").unwrap_err(), "unsupported fieldPath: spec.replicas");
    assert!(read("spec.nodeName['x']").is_err());
}

#[test]
fn resources_are_counted_in_the_divisor_and_rounded_up() {
    let pod = pod();
    let node = node_facts();
    let own = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let read = |name: Option<&str>, what: &str, divisor: &str| {
        let wanted = ResourceFieldSelector {
            container_name: name.map(str::to_owned),
            divisor: Some(Text(divisor.to_owned())),
            resource: what.to_owned(),
        };
        resolve_resource_field_ref(&pod, &node, own, &wanted)
    };
    for (container, what, divisor, value) in [
        (None, "limits.cpu", "0", "2"),
        (None, "limits.cpu", "1m", "1500"),
        (None, "limits.cpu", "1", "2"),
        (None, "requests.cpu", "1m", "250"),
        (None, "limits.memory", "0", "67108864"),
        (None, "limits.memory", "1Mi", "64"),
        (None, "requests.memory", "1k", "1001"),
        // A container without a limit gets the node's allocatable.
        (Some("plain"), "limits.cpu", "0", "4"),
        (Some("plain"), "limits.memory", "1Gi", "8"),
        (Some("plain"), "requests.memory", "0", "0"),
    ] {
        assert_eq!(read(container, what, divisor).unwrap(), value, "{container:?} {what} / {divisor}");
    }
    assert_eq!(read(Some("none"), "limits.cpu", "1").unwrap_err(), "container none not found");
    assert!(read(None, "cpu", "1").is_err());
    assert!(read(None, "limits.cpu", "abc").is_err());
}
