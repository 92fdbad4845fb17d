use http::Method;
use serde_json::json;

use super::{
    super::testing::{Stage, core, object},
    *,
};
use crate::api::GroupResource;

async fn collected(kind: &str, reference: Value) -> Result<Vec<String>, Misconfigured> {
    let core = core().await;
    for (namespace, name, tier) in [("prod", "a", "x"), ("prod", "b", "y"), ("test", "c", "x")] {
        let key = ObjectKey::new(GroupResource::new("", "configmaps"), namespace, name);
        core.store.create(key, object(name, ("tier", tier))).await.unwrap();
    }
    let stage = Stage::new(&core, Method::POST, "/api/v1/namespaces/prod/configmaps");
    let request = stage.request();
    let new = object("n", ("x", "1"));
    let subject = AdmissionAttributes { request: &request, object: Some(&new), old: None };
    let policy = AdmissionPolicy::compile(&json!({"spec": {"paramKind": {"apiVersion": "v1", "kind": kind}}}));
    let binding = AdmissionPolicyBinding::compile(&json!({"spec": {"paramRef": reference}}));
    let named = |param: Option<Value>| param.map_or_else(String::new, |param| param["metadata"]["name"].to_string());
    collect(&policy, &binding, subject).map(|found| found.into_iter().map(named).collect())
}

fn misconfigured(why: &str) -> Result<Vec<String>, Misconfigured> {
    Err(Misconfigured::Binding(why.to_owned()))
}

#[tokio::test]
async fn params_are_named_or_selected_in_the_namespace_of_the_request_or_another() {
    assert_eq!(collected("ConfigMap", Value::Null).await, Ok(vec![String::new()]));
    assert_eq!(collected("ConfigMap", json!({"name": "a"})).await, Ok(vec!["\"a\"".to_owned()]));
    assert_eq!(collected("ConfigMap", json!({"name": "c", "namespace": "test"})).await, Ok(vec!["\"c\"".to_owned()]));
    let selected = json!({"selector": {"matchLabels": {"tier": "y"}}});
    assert_eq!(collected("ConfigMap", selected).await, Ok(vec!["\"b\"".to_owned()]));
    assert_eq!(collected("ConfigMap", json!({"selector": {}})).await.unwrap().len(), 2);
    assert_eq!(collected("Namespace", json!({"name": "prod"})).await, Ok(vec!["\"prod\"".to_owned()]));
}

#[tokio::test]
async fn params_that_are_not_there_follow_the_binding() {
    let absent = |action: &str| json!({"name": "zz", "parameterNotFoundAction": action});
    assert_eq!(collected("ConfigMap", absent("Allow")).await, Ok(vec![]));
    let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(collected("ConfigMap", absent("Deny")).await, misconfigured(why));
    let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
    assert_eq!(collected("Namespace", json!({"name": "prod", "namespace": "x"})).await, misconfigured(why));
    let why = "failed to find resource referenced by paramKind: '/v1, Kind=Nope'";
    assert_eq!(collected("Nope", json!({"name": "a"})).await, Err(Misconfigured::Policy(why.to_owned())));
}
