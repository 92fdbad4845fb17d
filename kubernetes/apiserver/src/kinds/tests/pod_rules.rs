//! The rules of a pod's spec: security, volumes, scheduling, probes and names.

use serde_json::{Value, json};

use super::create;

/// Asserts the errors of a pod whose spec has these fields, beside one container with those.
fn assert_refused(spec: Value, container: Value, expected: &[&str]) {
    let mut whole = json!({"containers": [{"name": "a", "image": "i"}]});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    for (field, value) in container.as_object().into_iter().flatten() {
        whole["containers"][0][field] = value.clone();
    }
    let found = create("v1", "Pod", json!({"metadata": {"name": "p"}, "spec": whole})).err().unwrap_or_default();
    assert_eq!(found, expected, "{whole}");
}

#[test]
fn security_context_with_unknown_values_is_refused() {
    let range = "must be between 0 and 2147483647, inclusive";
    let context = json!({
        "supplementalGroups": [-1], "fsGroupChangePolicy": "X", "seccompProfile": {"type": "Localhost"},
        "sysctls": [{"name": "net.a"}, {"name": "net.a"}], "appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"},
    });
    assert_refused(
        json!({"securityContext": context}),
        json!({}),
        &[
            &format!("spec.securityContext.supplementalGroups[0]: Invalid value: -1: {range}"),
            "spec.securityContext.sysctls[1].name: Duplicate value: \"net.a\"",
            "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"X\": supported values: \"Always\", \"OnRootMismatch\"",
            "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            "spec.securityContext.appArmorProfile.localhostProfile: Invalid value: \"x\": can only be set when AppArmor type is Localhost",
        ],
    );
    assert_refused(
        json!({"shareProcessNamespace": true, "hostPID": true}),
        json!({}),
        &[
            "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
        ],
    );
}

#[test]
fn privileged_container_without_escalation_is_refused_and_shown_as_its_internal_type() {
    let shown = "{\"Capabilities\":null,\"Privileged\":true,\"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":null,\
                 \"RunAsGroup\":null,\"RunAsNonRoot\":null,\"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,\
                 \"ProcMount\":null,\"SeccompProfile\":null,\"AppArmorProfile\":null}";
    let context = json!({"privileged": true, "allowPrivilegeEscalation": false});
    let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
    assert_refused(
        json!({}),
        json!({"securityContext": context}),
        &[&format!("spec.containers[0].securityContext: Invalid value: {shown}: {detail}")],
    );
}

#[test]
fn volume_with_an_error_cannot_be_mounted() {
    let volumes = json!([{"name": "v", "hostPath": {"path": "/a/../b", "type": "X"}}]);
    let mounts = json!([{"name": "v", "mountPath": "/m", "subPath": "/s", "mountPropagation": "Bidirectional"}]);
    assert_refused(
        json!({"volumes": volumes}),
        json!({"volumeMounts": mounts}),
        &[
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            "spec.volumes[0].hostPath.type: Unsupported value: \"X\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \
         \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
            "spec.containers[0].volumeMounts.subPath: Invalid value: \"/s\": must be a relative path",
            "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to \
         privileged containers",
        ],
    );
}

#[test]
fn projected_sources_must_not_share_a_path() {
    let item = json!([{"key": "k", "path": "p"}]);
    let sources = json!([
        {"configMap": {"name": "c", "items": item}}, {"secret": {"name": "s", "items": item}},
        {"serviceAccountToken": {"path": "../t", "expirationSeconds": 5}}, {"downwardAPI": {"items": [{"path": "x"}]}},
    ]);
    assert_refused(
        json!({"volumes": [{"name": "v", "projected": {"sources": sources}}], "serviceAccountName": "a"}),
        json!({}),
        &[
            "spec.volumes[0].projected: Invalid value: \"s\": conflicting duplicate paths",
            "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 5: may not specify a \
         duration less than 10 minutes",
            "spec.volumes[0].projected.path: Invalid value: \"../t\": must not contain '..'",
            "spec.volumes[0].projected.sources[3].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
        ],
    );
}

#[test]
fn node_affinity_with_wrong_requirements_is_refused() {
    let terms = json!([{
        "matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "Gt", "values": ["1", "2"]}],
        "matchFields": [{"key": "spec.x", "operator": "Exists"}],
    }]);
    let affinity =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
    assert_refused(
        json!({"affinity": affinity}),
        json!({}),
        &[
            &format!(
                "{at}.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
            &format!(
                "{at}.matchExpressions[1].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            ),
            &format!("{at}.matchFields[0].operator: Invalid value: \"Exists\": not a valid selector operator"),
            &format!("{at}.matchFields[0].key: Invalid value: \"spec.x\": not a valid field selector key"),
        ],
    );
}

#[test]
fn repeated_spread_constraint_is_reported_at_the_first() {
    let constraint = json!({"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"});
    let mut second = constraint.clone();
    second["minDomains"] = 1.into();
    assert_refused(
        json!({"topologySpreadConstraints": [constraint, second]}),
        json!({}),
        &[
            "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{z, ScheduleAnyway}\"",
            "spec.topologySpreadConstraints[1].minDomains: Invalid value: 1: can only use minDomains if \
         whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        ],
    );
}

#[test]
fn sleep_longer_than_the_grace_period_is_refused() {
    let hooks = json!({"preStop": {"sleep": {"seconds": 31}}, "stopSignal": "SIGINT"});
    assert_refused(
        json!({}),
        json!({"lifecycle": hooks}),
        &[
            "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than \
         terminationGracePeriodSeconds (30)",
            "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`",
        ],
    );
}

#[test]
fn field_references_differ_between_variables_and_volumes() {
    let variable = |field: &str| json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": field}}}]);
    let at = "spec.containers[0].env[0].valueFrom.fieldRef";
    assert_refused(
        json!({}),
        json!({"env": variable("status.phase")}),
        &[&format!(
            "{at}.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \
         \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \
         \"status.podIP\", \"status.podIPs\""
        )],
    );
    assert_refused(
        json!({}),
        json!({"env": variable("spec.x['y']")}),
        &[&format!(
            "{at}.fieldPath: Invalid value: \"spec.x['y']\": error converting fieldPath: field label does not support subscript: spec.x['y']"
        )],
    );
    let resource =
        json!([{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1Ki"}}}]);
    assert_refused(
        json!({}),
        json!({"env": resource}),
        &[
            "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m \
         and 1 are supported with the cpu resource",
        ],
    );
}

#[test]
fn name_server_list_is_limited_also_with_another_policy() {
    let config = json!({"nameservers": ["a", "1.1.1.1", "1.1.1.2", "1.1.1.3"], "searches": ["_a.b."], "options": [{"name": ""}]});
    assert_refused(
        json!({"dnsConfig": config}),
        json!({}),
        &[
            "spec.dnsConfig.nameservers: Invalid value: [\"a\",\"1.1.1.1\",\"1.1.1.2\",\"1.1.1.3\"]: must not have more than 3 nameservers",
            "spec.dnsConfig.nameservers[0]: Invalid value: \"a\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ],
    );
}

#[test]
fn container_must_name_a_claim_of_its_pod() {
    let claims = json!({"claims": [{"name": "x"}]});
    assert_refused(
        json!({}),
        json!({"resources": claims}),
        &[
            "spec.containers[0].resources.claims[0]: Not found: \"x\": must be one of the names in pod.spec.resourceClaims which is empty",
        ],
    );
}
