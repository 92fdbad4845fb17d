//! Workloads: defaults, generations, selectors, statuses.

use serde_json::{Value, json};

use super::{bare, create, full_pod_spec, full_template, patch, patch_part, template};

fn deployment() -> Value {
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template()});
    create("apps/v1", "Deployment", json!({"metadata": {"name": "web"}, "spec": spec})).unwrap()
}

fn of(kind: &str, more: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template()});
    json_patch::merge(&mut spec, &more);
    bare(create("apps/v1", kind, json!({"metadata": {"name": "x"}, "spec": spec})).unwrap())
}

#[test]
fn a_deployment_has_its_defaults() {
    let spec = json!({
        "replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": full_template(),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
    });
    assert_eq!(bare(deployment()), json!({"metadata": {"name": "web", "generation": 1}, "spec": spec, "status": {}}));
}

#[test]
fn sets_have_their_defaults() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let daemons = json!({
        "metadata": {"name": "x", "generation": 1, "annotations": {"deprecated.daemonset.template.generation": "1"}},
        "spec": {
            "selector": selector, "template": full_template(), "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        },
        "status": {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
    });
    assert_eq!(of("DaemonSet", json!({})), daemons);
    let stateful = json!({
        "metadata": {"name": "x", "generation": 1},
        "spec": {
            "replicas": 1, "selector": selector, "template": full_template(), "serviceName": "s",
            "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
        "status": {"replicas": 0, "availableReplicas": 0},
    });
    assert_eq!(of("StatefulSet", json!({"serviceName": "s"})), stateful);
    let replicas = json!({
        "metadata": {"name": "x", "generation": 1}, "status": {"replicas": 0},
        "spec": {"replicas": 1, "selector": selector, "template": full_template()},
    });
    assert_eq!(of("ReplicaSet", json!({})), replicas);
}

#[test]
fn the_generation_counts_specs_and_a_deployments_annotations() {
    let old = deployment();
    let generation = |change: Value| {
        let new = patch("apps/v1", "Deployment", &old, &change).unwrap();
        new.pointer("/metadata/generation").unwrap().as_i64().unwrap()
    };
    assert_eq!(generation(json!({"spec": {"replicas": 3}})), 2);
    assert_eq!(generation(json!({"metadata": {"labels": {"x": "y"}}})), 1);
    assert_eq!(generation(json!({"metadata": {"annotations": {"x": "y"}}})), 2);
    assert_eq!(generation(json!({"status": {"replicas": 7}})), 1);
    let new = patch("apps/v1", "Deployment", &old, &json!({"spec": {"replicas": null}})).unwrap();
    assert_eq!(new.pointer("/spec/replicas"), Some(&json!(1)), "the default comes back");
}

#[test]
fn a_changed_template_counts_for_daemon_sets() {
    let old = of("DaemonSet", json!({}));
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}});
    let new = patch("apps/v1", "DaemonSet", &old, &change).unwrap();
    let annotation = "/metadata/annotations/deprecated.daemonset.template.generation";
    assert_eq!(new.pointer(annotation), Some(&json!("2")));
}

#[test]
fn selector_and_template_agree_and_the_selector_stays() {
    let words = "`selector` does not match template `labels`";
    let labels = format!("spec.template.metadata.labels: Invalid value: {{\"a\":\"b\"}}: {words}");
    let changed =
        patch("apps/v1", "Deployment", &deployment(), &json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}}));
    let fixed = "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable".to_owned();
    assert_eq!(changed.unwrap_err(), [labels, fixed]);
    let empty = create("apps/v1", "Deployment", json!({"metadata": {"name": "x"}})).unwrap_err();
    let null = format!("spec.template.metadata.labels: Invalid value: null: {words}");
    assert_eq!(empty, ["spec.selector: Required value", &null, "spec.template.spec.containers: Required value"]);
}

#[test]
fn every_wrong_field_is_told() {
    let spec = json!({
        "replicas": -1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "Bad Name", "image": ""}]}},
    });
    let wrong = create("apps/v1", "Deployment", json!({"metadata": {"name": "x"}, "spec": spec})).unwrap_err();
    let name = "spec.template.spec.containers[0].name: Invalid value: \"Bad Name\": a lowercase RFC 1123 label must consist of lower \
                case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
                '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let replicas = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(wrong, [replicas, name, "spec.template.spec.containers[0].image: Required value"]);
}

#[test]
fn a_status_adds_up() {
    let status = |status: Value| {
        let change = json!({"status": status});
        patch_part("apps/v1", "Deployment", "status", &deployment(), &change).unwrap_err()
    };
    let above = |field: &str, count: i64| {
        format!("status.{field}: Invalid value: {count}: cannot be greater than status.replicas")
    };
    let negative = "status.replicas: Invalid value: -1: must be greater than or equal to 0".to_owned();
    let all = [negative, above("updatedReplicas", 0), above("readyReplicas", 0), above("availableReplicas", 0)];
    assert_eq!(status(json!({"replicas": -1})), all);
    assert_eq!(status(json!({"replicas": 1, "readyReplicas": 2})), [above("readyReplicas", 2)]);
}

#[test]
fn a_stateful_set_changes_only_in_part() {
    let old = of("StatefulSet", json!({"serviceName": "s"}));
    assert!(patch("apps/v1", "StatefulSet", &old, &json!({"spec": {"replicas": 3}})).is_ok());
    let wrong = patch("apps/v1", "StatefulSet", &old, &json!({"spec": {"serviceName": "t"}})).unwrap_err();
    assert!(
        wrong[0]
            .starts_with("spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals'")
    );
}

#[test]
fn claims_of_a_stateful_set_are_volumes() {
    let container = json!({"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": {"name": "data"}, "spec": spec});
    let more = json!({"template": {"spec": {"containers": [container]}}, "volumeClaimTemplates": [claim]});
    let set = of("StatefulSet", more);
    let claim = set.pointer("/spec/volumeClaimTemplates/0").unwrap();
    assert_eq!(claim.pointer("/spec/volumeMode"), Some(&json!("Filesystem")));
    assert_eq!(claim.get("kind"), Some(&json!("PersistentVolumeClaim")));
}

#[test]
fn a_job_makes_its_selector() {
    let spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    let job = create("batch/v1", "Job", json!({"metadata": {"name": "j"}, "spec": spec})).unwrap();
    let labels = json!({
        "batch.kubernetes.io/controller-uid": "U", "batch.kubernetes.io/job-name": "j", "controller-uid": "U", "job-name": "j",
    });
    let mut pod = full_pod_spec();
    pod["restartPolicy"] = json!("Never");
    let expected = json!({
        "metadata": {"name": "j", "generation": 1, "labels": labels},
        "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": 6, "manualSelector": false, "completionMode": "NonIndexed",
            "suspend": false, "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "U"}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
        "status": {},
    });
    assert_eq!(bare(job), expected);
}

#[test]
fn a_cron_job_has_a_schedule_and_a_job_that_ends() {
    let cron = |schedule: &str, pod: Value| {
        let spec = json!({"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}});
        create("batch/v1", "CronJob", json!({"metadata": {"name": "c"}, "spec": spec}))
    };
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    let good = cron("*/5 * * * *", pod.clone()).unwrap();
    assert_eq!(good.pointer("/spec/jobTemplate/spec/template/metadata"), Some(&json!({})));
    assert_eq!(good.pointer("/spec/failedJobsHistoryLimit"), Some(&json!(1)));
    let at = "spec.jobTemplate.spec.template.spec";
    let expected = [
        "spec.schedule: Invalid value: \"bad\": expected exactly 5 fields, found 1: [bad]".to_owned(),
        format!("{at}.containers: Required value"),
        format!("{at}.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""),
    ];
    assert_eq!(cron("bad", json!({"containers": []})).unwrap_err(), expected);
    for good in ["@hourly", "@every 1h30m", "0 0 1 jan sun", "1-5,7 */2 ? * mon-fri"] {
        assert!(cron(good, pod.clone()).is_ok(), "{good}");
    }
    for (bad, why) in [
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@never", "unrecognized descriptor: @never"),
    ] {
        let words = format!("spec.schedule: Invalid value: {bad:?}: {why}");
        assert_eq!(cron(bad, pod.clone()).unwrap_err(), [words]);
    }
}
