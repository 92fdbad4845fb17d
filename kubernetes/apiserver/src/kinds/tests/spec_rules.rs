//! The rules of jobs, workloads, volumes, quotas and classes.

use serde_json::{Value, json};

use super::{create, patch};

fn errors(api_version: &str, kind: &str, spec: Value) -> Vec<String> {
    let body = json!({"metadata": {"name": "x"}, "spec": spec});
    create(api_version, kind, body).err().unwrap_or_default()
}

fn template(policy: &str) -> Value {
    let spec = json!({"restartPolicy": policy, "containers": [{"name": "a", "image": "i"}]});
    json!({"metadata": {"labels": {"a": "b"}}, "spec": spec})
}

#[test]
fn failure_policy_of_a_job_is_checked_rule_by_rule() {
    let rules = json!([
        {"action": "X"},
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [0, 3, 2, 3], "containerName": "z"}},
        {"action": "Ignore", "onPodConditions": [{"type": "T", "status": "Maybe"}]},
    ]);
    let spec = json!({"template": template("Never"), "podFailurePolicy": {"rules": rules}});
    assert_eq!(
        errors("batch/v1", "Job", spec),
        [
            "spec.podFailurePolicy.rules[0].action: Unsupported value: \"X\": supported values: \"Count\", \"FailIndex\", \
         \"FailJob\", \"Ignore\"",
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            "spec.podFailurePolicy.rules[1].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
            "spec.podFailurePolicy.rules[1].onExitCodes.containerName: Invalid value: \"z\": must be one of the container or \
         initContainer names in the pod template",
            "spec.podFailurePolicy.rules[1].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
            "spec.podFailurePolicy.rules[1].onExitCodes.values[3]: Duplicate value: 3",
            "spec.podFailurePolicy.rules[1].onExitCodes.values: Invalid value: [0,3,2,3]: must be ordered",
            "spec.podFailurePolicy.rules[2].onPodConditions[0].status: Unsupported value: \"Maybe\": supported values: \
         \"False\", \"True\", \"Unknown\"",
        ]
    );
}

#[test]
fn success_policy_of_a_job_needs_indexes_that_exist() {
    let spec = |mode: &str, indexes: &str| {
        let rules = json!([{"succeededIndexes": indexes, "succeededCount": 9}]);
        let counts = json!({"completionMode": mode, "completions": 5, "parallelism": 1});
        let mut spec = json!({"template": template("Never"), "successPolicy": {"rules": rules}});
        counts.as_object().unwrap().iter().for_each(|(field, value)| spec[field] = value.clone());
        errors("batch/v1", "Job", spec)
    };
    let at = "spec.successPolicy.rules[0]";
    let shown = "{\"Rules\":[{\"SucceededIndexes\":\"1\",\"SucceededCount\":9}]}";
    assert_eq!(
        spec("NonIndexed", "1"),
        [format!("spec.successPolicy: Invalid value: {shown}: requires indexed completion mode")]
    );
    assert_eq!(
        spec("Indexed", "0,2-4"),
        [
            format!(
                "{at}.succeededCount: Invalid value: 9: must be less than or equal to 5 (the number of specified completions)"
            ),
            format!(
                "{at}.succeededCount: Invalid value: 9: must be less than or equal to 4 (the number of indexes in the specified \
             succeededIndexes field)"
            ),
        ]
    );
    let parse = |indexes: &str| spec("Indexed", indexes).remove(0);
    for (indexes, why) in [
        ("7", "too large index: \\\"7\\\""),
        ("1,1", "non-increasing order, previous: 1, current: 1"),
        ("3-2", "non-increasing order, previous: 3, current: 2"),
        ("x", "cannot convert string to integer for index: \\\"x\\\""),
    ] {
        let why = why.replace('\\', "");
        assert_eq!(
            parse(indexes),
            format!("{at}.succeededIndexes: Invalid value: \"{indexes}\": error parsing succeededIndexes: {why}")
        );
    }
}

#[test]
fn unstarted_job_may_change_where_its_pods_run() {
    let spec = json!({"template": template("Never"), "suspend": true});
    let job = create("batch/v1", "Job", json!({"metadata": {"name": "x"}, "spec": spec})).unwrap();
    let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    patch("batch/v1", "Job", &job, &pod(json!({"nodeSelector": {"a": "b"}}))).unwrap();
    let refused = patch("batch/v1", "Job", &job, &pod(json!({"terminationGracePeriodSeconds": 5}))).unwrap_err();
    assert!(refused[0].ends_with("field is immutable"), "{refused:?}");
}

#[test]
fn time_zone_of_a_cron_job_must_exist() {
    let zone = |zone: &str| {
        let spec = json!({"schedule": "* * * * *", "timeZone": zone, "jobTemplate": {"spec": {"template": template("Never")}}});
        errors("batch/v1", "CronJob", spec)
    };
    assert!(zone("UTC").is_empty());
    assert_eq!(zone(" UTC"), ["spec.timeZone: Invalid value: \" UTC\": unknown time zone  UTC"]);
    assert_eq!(zone("../x"), ["spec.timeZone: Invalid value: \"../x\": unknown time zone ../x"]);
}

#[test]
fn update_strategies_are_shown_as_their_internal_types() {
    let spec = |strategy: &str, given: Value| {
        let mut spec =
            json!({"selector": {"matchLabels": {"a": "b"}}, "template": template("Always"), "serviceName": "s"});
        spec[strategy] = given;
        spec
    };
    assert_eq!(
        errors("apps/v1", "Deployment", spec("strategy", json!({"type": "X"}))),
        [
            "spec.strategy: Unsupported value: {\"Type\":\"X\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
        ]
    );
    let on_delete = json!({"type": "OnDelete", "rollingUpdate": {"partition": 1}});
    assert_eq!(
        errors("apps/v1", "StatefulSet", spec("updateStrategy", on_delete)),
        [
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: only allowed for \
         updateStrategy 'RollingUpdate'",
        ]
    );
    let claims = json!([{"metadata": {"name": "v"}, "spec": {}}]);
    assert_eq!(
        errors("apps/v1", "StatefulSet", spec("volumeClaimTemplates", claims)),
        [
            "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
            "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ]
    );
}

#[test]
fn persistent_volume_keeps_its_source() {
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}});
    let volume = create("v1", "PersistentVolume", json!({"metadata": {"name": "x"}, "spec": spec})).unwrap();
    let moved = patch("v1", "PersistentVolume", &volume, &json!({"spec": {"hostPath": {"path": "/b"}}})).unwrap_err();
    assert!(
        moved[0].starts_with("spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable"),
        "{moved:?}"
    );
    let wrong = json!({
        "capacity": {"storage": "-1"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/.."}, "nfs": {"server": "s"},
        "nodeAffinity": {}, "persistentVolumeReclaimPolicy": "Retain",
    });
    assert_eq!(
        errors("v1", "PersistentVolume", wrong),
        [
            "spec.capacity[storage]: Invalid value: \"-1\": must be a valid resource quantity",
            "spec.capacity[storage]: Invalid value: \"-1\": must be greater than zero",
            "spec.nodeAffinity.required: Required value: must specify required node constraints",
            "spec.hostPath.path: Invalid value: \"/..\": must not contain '..'",
            "spec.nfs: Forbidden: may not specify more than 1 volume type",
        ]
    );
}

#[test]
fn quota_knows_its_resources_and_scopes() {
    let spec = json!({"hard": {"cpu": "-1", "foo": "1", "pods": "1.5", "storage": "1"}, "scopes": ["BestEffort", "NotBestEffort"]});
    let scopes = "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]";
    assert_eq!(
        errors("v1", "ResourceQuota", spec),
        [
            "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.hard[foo]: Invalid value: \"foo\": must be a standard resource type or fully qualified",
            "spec.hard[foo]: Invalid value: \"foo\": must be a standard resource for quota",
            "spec.hard[pods]: Invalid value: \"1.5\": must be an integer",
            "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota",
            &format!("{scopes}: unsupported scope applied to resource"),
            &format!("{scopes}: conflicting scopes"),
        ]
    );
}

#[test]
fn ingress_class_names_its_controller() {
    let wrong = json!({"controller": "abc", "parameters": {"kind": "", "name": "a/b", "scope": "Namespace"}});
    assert_eq!(
        errors("networking.k8s.io/v1", "IngressClass", wrong),
        [
            "spec.controller: Invalid value: \"abc\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            "spec.parameters.kind: Required value",
            "spec.parameters.name: Invalid value: \"a/b\": may not contain '/'",
            "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        ]
    );
}

#[test]
fn service_of_a_family_that_is_not_served_is_refused() {
    let service = |more: Value| {
        let mut spec = json!({"ports": [{"port": 80}]});
        more.as_object().unwrap().iter().for_each(|(field, value)| spec[field] = value.clone());
        errors("v1", "Service", spec)
    };
    let family = "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster";
    assert_eq!(service(json!({"ipFamilies": ["IPv6"]})), [family]);
    let dual = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services";
    assert_eq!(service(json!({"ipFamilyPolicy": "RequireDualStack"})), [dual]);
    assert!(service(json!({"clusterIP": "None", "ipFamilyPolicy": "RequireDualStack"})).is_empty());
    let two = json!({"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "10.0.0.10"]});
    assert_eq!(
        service(two),
        [
            "spec.clusterIPs: Invalid value: [\"10.0.0.9\",\"10.0.0.10\"]: may specify no more than one IP for each IP family"
        ]
    );
}
