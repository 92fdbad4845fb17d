use serde_json::{Value, json};

use crate::{CollectorSettings, v1alpha1::TelemetrySpec, validate_telemetry};

fn spec(json: Value) -> TelemetrySpec {
    serde_json::from_value(json).unwrap()
}

fn refused(json: Value) -> Vec<String> {
    validate_telemetry(&spec(json)).problems.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_path() {
    let said = refused(json!({
        "replicas": {"min": 5, "max": 2},
        "scaling": {"cpuUtilization": 0},
        "resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "512Mi"}},
        "sticky": {"replicas": 0, "resources": {"limits": {"memory": "512m"}}},
        "agent": {
            "resources": {"limits": {"memory": "much"}},
            "linkedLogDirectories": ["/var/lib/docker/containers", "/etc", "var/containers", "/a/../containers"],
        },
        "image": "Not An Image",
        "imagePullSecrets": [{"name": "right"}, {"name": "Wrong!"}],
        "slots": {"logs": 2000},
        "defaults": {"timeout": "soon", "queue": {"sizeBytes": 1}},
    }));
    let paths: Vec<&str> = said.iter().filter_map(|words| words.split(": ").next()).collect();
    assert_eq!(
        paths,
        [
            "spec.defaults.timeout",
            "spec.defaults.queue.sizeBytes",
            "spec.replicas",
            "spec.scaling.cpuUtilization",
            "spec.resources.requests[memory]",
            "spec.sticky.replicas",
            "spec.sticky.resources.limits[memory]",
            "spec.agent.resources.limits[memory]",
            "spec.agent.linkedLogDirectories[1]",
            "spec.agent.linkedLogDirectories[2]",
            "spec.agent.linkedLogDirectories[3]",
            "spec.image",
            "spec.imagePullSecrets[1].name",
            "spec.slots.logs",
        ]
    );
}

#[test]
fn what_makes_sense_holds_beside_what_does_not() {
    let wrong = spec(
        json!({"image": "Not An Image", "slots": {"traces": 7}, "replicas": {"min": 3}, "scaling": {"cpuUtilization": -1}}),
    );
    let (settings, problems) = CollectorSettings::from_spec_lenient(&wrong, "kubewake-system");
    assert_eq!(problems.len(), 2);
    let right =
        CollectorSettings::from_spec(&spec(json!({"slots": {"traces": 7}, "replicas": {"min": 3}})), "kubewake-system");
    assert_eq!(right, Ok(settings));
}

#[test]
fn what_is_not_said_of_replicas_follows_what_is() {
    let bounds = |json| {
        let settings = CollectorSettings::from_spec(&spec(json!({"replicas": json})), "").unwrap();
        (settings.min_replicas, settings.max_replicas)
    };
    assert_eq!(bounds(json!({})), (2, 10));
    assert_eq!(bounds(json!({"min": 12})), (12, 12));
    assert_eq!(bounds(json!({"max": 1})), (1, 1));
    assert_eq!(bounds(json!({"min": 1, "max": 3})), (1, 3));
}

#[test]
fn a_queue_that_does_not_fit_is_unwise() {
    let warned = |json| {
        let review = validate_telemetry(&spec(json));
        assert_eq!(review.problems, []);
        review.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let size = json!({"queue": {"sizeBytes": 400 << 20}});
    let said = warned(json!({"defaults": size}));
    assert!(
        said.len() == 1
            && said[0].starts_with("spec.defaults.queue.sizeBytes: is more than a collector of 512Mi can hold"),
        "{said:?}"
    );
    assert_eq!(warned(json!({"defaults": size, "resources": {"limits": {"memory": "1Gi"}}})), [""; 0]);
    assert_eq!(warned(json!({"defaults": {"queue": {"sizeBytes": 64 << 20}}})), [""; 0]);
}

#[test]
fn trusted_relays_are_names_in_an_order_that_does_not_matter() {
    let said = refused(json!({"trustedRelays": [
        {"namespace": "shop", "serviceAccount": "agent"},
        {"namespace": "a.b", "serviceAccount": "agent"},
        {"namespace": "shop", "serviceAccount": "*"},
    ]}));
    let paths: Vec<&str> = said.iter().filter_map(|words| words.split(": ").next()).collect();
    assert_eq!(paths, ["spec.trustedRelays[1].namespace", "spec.trustedRelays[2].serviceAccount"]);
    let many: Vec<Value> = (0..33).map(|n| json!({"namespace": "shop", "serviceAccount": format!("a{n}")})).collect();
    assert_eq!(refused(json!({"trustedRelays": many})).len(), 1);
    let [one, two] = ["a", "b"].map(|name| json!({"namespace": name, "serviceAccount": "agent"}));
    let of = |relays: Value| CollectorSettings::from_spec(&spec(json!({"trustedRelays": relays})), "system").unwrap();
    assert_eq!(of(json!([one, two])), of(json!([two, one, two])));
}
