use super::*;

const REPLICAS: [&str; 2] = ["spec", "replicas"];

fn scale(deployment: &mut Fixture, manager: &str, replicas: u32) {
    let parent = deployment.object.as_mut().unwrap();
    let entries = scale::to_scale(parent, &REPLICAS).unwrap();
    let live = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "uid": "u",
        "managedFields": entries}, "spec": {"replicas": parent["spec"]["replicas"]}});
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(replicas);
    let mut of_scale = Fixture::builtin(scale::SCALE_API_VERSION, "Scale");
    of_scale.object = Some(live);
    of_scale.owner(manager, "scale").update(of_scale.object.as_ref(), &mut new);
    parent["spec"]["replicas"] = json!(replicas);
    scale::to_parent(parent, &new, "apps/v1", &REPLICAS);
}

fn deployment() -> Fixture {
    Fixture::builtin("apps/v1", "Deployment")
}

#[test]
fn replicas_are_handed_over_to_who_scales_and_apply_conflicts_then() {
    let mut deployment = deployment();
    let config = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 2}});
    deployment.apply("one", config.clone());
    scale(&mut deployment, "scaler", 7);
    deployment.expect(&[
        ("one Apply", json!({"f:metadata": {"f:labels": {"f:app": {}}}})),
        ("scaler Update scale", json!({"f:spec": {"f:replicas": {}}})),
    ]);
    let entry = deployment.at("/metadata/managedFields/1");
    assert_eq!((entry.get("time"), &entry["apiVersion"]), (None, &json!("apps/v1")));
    let refused = deployment.try_apply("one", "", config, false).unwrap_err();
    let with = "\"scaler\" with subresource \"scale\" using apps/v1";
    assert_eq!(refused.message, format!("Apply failed with 1 conflict: conflict with {with}: .spec.replicas"));
}

#[test]
fn an_updater_that_scales_has_a_second_entry() {
    let mut deployment = deployment();
    deployment.put("m", json!({"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 2}}));
    scale(&mut deployment, "m", 5);
    deployment.expect(&[
        ("m Update scale", json!({"f:spec": {"f:replicas": {}}})),
        ("m Update", json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}})),
    ]);
}

#[test]
fn scaling_to_the_same_number_changes_nothing() {
    let mut deployment = deployment();
    deployment.put("m", json!({"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 2}}));
    let before = deployment.object.clone();
    scale(&mut deployment, "n", 2);
    assert_eq!(deployment.object, before);
}
