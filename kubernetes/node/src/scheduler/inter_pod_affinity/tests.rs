use super::*;
use crate::{
    key::NamespacedKey,
    scheduler::{cache::SchedulerCache, node_selection},
};

const HOST: &str = "kubernetes.io/hostname";

/// Two zones: `a` with the nodes `one` and `two`, `b` with `three`.
fn nodes() -> Vec<Arc<Node>> {
    let node = |name: &str, zone: &str| {
        let labels = json!({ HOST: name, "zone": zone });
        let allocatable = json!({ "cpu": "9", "memory": "9Gi", "pods": "9" });
        let node = json!({ "metadata": { "name": name, "labels": labels }, "status": { "allocatable": allocatable } });
        Arc::new(serde_json::from_value(node).unwrap())
    };
    vec![node("one", "a"), node("two", "a"), node("three", "b")]
}

fn pod(name: &str, app: &str, mut spec: Value) -> Arc<Pod> {
    spec["containers"] = json!([]);
    let metadata = json!({ "name": name, "namespace": "here", "uid": name, "labels": { "app": app, "v": "1" } });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
}

fn term(app: &str, key: &str) -> Value {
    json!({ "labelSelector": { "matchLabels": { "app": app } }, "topologyKey": key })
}

fn required(kind: &str, term: Value) -> Value {
    json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } })
}

fn preferred(kind: &str, term: Value) -> Value {
    let wish = json!({ "weight": 10, "podAffinityTerm": term });
    json!({ "affinity": { kind: { "preferredDuringSchedulingIgnoredDuringExecution": [wish] } } })
}

/// Pods on nodes, as name, app and node.
fn with(pods: &[(&str, &str, &str)]) -> SchedulerCache {
    let mut ledger = SchedulerCache::default();
    for (name, app, node) in pods {
        ledger.assume_pod(NamespacedKey::new("here", *name), &pod(name, app, json!({})), node);
    }
    ledger
}

fn placed(pod: &Pod, ledger: &SchedulerCache) -> Result<String, String> {
    let nodes = nodes();
    node_selection::select_node(pod, &NodeInfo::snapshot(&nodes, ledger), &[]).map_err(|why| why.to_string())
}

#[test]
fn a_pod_goes_where_its_friends_are() {
    let near = |key| pod("p", "web", required("podAffinity", term("db", key)));
    let ledger = with(&[("db", "db", "two")]);
    assert_eq!(placed(&near(HOST), &ledger), Ok("two".into()));
    assert_eq!(placed(&near("zone"), &ledger), Ok("one".into()));
    let nowhere = "0/3 nodes are available: 3 node(s) didn't match pod affinity rules.";
    assert_eq!(placed(&near(HOST), &SchedulerCache::default()), Err(nowhere.into()));
    let own = pod("p", "db", required("podAffinity", term("db", HOST)));
    assert!(placed(&own, &SchedulerCache::default()).is_ok(), "somebody has to be the first");
}

#[test]
fn a_pod_keeps_away_and_is_kept_away() {
    let apart = |key| pod("p", "web", required("podAntiAffinity", term("web", key)));
    let ledger = with(&[("w", "web", "one")]);
    assert_eq!(placed(&apart("zone"), &ledger), Ok("three".into()));
    let ledger = with(&[("w1", "web", "one"), ("w2", "web", "two"), ("w3", "web", "three")]);
    let nowhere = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(placed(&apart(HOST), &ledger), Err(nowhere.into()));
    let mut ledger = SchedulerCache::default();
    let hermit = pod("hermit", "hermit", required("podAntiAffinity", term("web", "zone")));
    ledger.assume_pod(NamespacedKey::new("here", "hermit"), &hermit, "two");
    assert_eq!(placed(&pod("p", "web", json!({})), &ledger), Ok("three".into()));
    ledger.assume_pod(NamespacedKey::new("here", "another"), &hermit, "three");
    let nowhere = "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules.";
    assert_eq!(placed(&pod("p", "web", json!({})), &ledger), Err(nowhere.into()));
    assert!(placed(&pod("p", "db", json!({})), &ledger).is_ok());
}

#[test]
fn terms_mean_pods_of_their_namespaces() {
    let there: Arc<Namespace> = Arc::new(
        serde_json::from_value(json!({ "metadata": { "name": "there", "labels": { "team": "t" } } })).unwrap(),
    );
    let matches = |mut term: Value, more: Value| {
        term.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let asker: Arc<Pod> = pod("p", "web", json!({}));
        let mut other = (*pod("o", "db", json!({}))).clone();
        other.metadata.namespace = Some("there".to_owned());
        AffinityTerm::new(&serde_json::from_value(term).unwrap(), &asker, &[Arc::clone(&there)]).matches(&other)
    };
    assert!(!matches(term("db", HOST), json!({})));
    assert!(matches(term("db", HOST), json!({ "namespaces": ["there"] })));
    assert!(matches(term("db", HOST), json!({ "namespaceSelector": {} })));
    assert!(matches(term("db", HOST), json!({ "namespaceSelector": { "matchLabels": { "team": "t" } } })));
    assert!(!matches(term("db", HOST), json!({ "namespaceSelector": { "matchLabels": { "team": "u" } } })));
    assert!(matches(term("db", HOST), json!({ "namespaces": ["there"], "matchLabelKeys": ["v"] })));
    assert!(!matches(term("db", HOST), json!({ "namespaces": ["there"], "mismatchLabelKeys": ["v"] })));
}

#[test]
fn wishes_are_followed_where_they_can_be() {
    let ledger = with(&[("db", "db", "two"), ("w", "web", "three")]);
    assert_eq!(placed(&pod("p", "x", preferred("podAffinity", term("db", HOST))), &ledger), Ok("two".into()));
    assert_eq!(placed(&pod("p", "x", preferred("podAntiAffinity", term("db", "zone"))), &ledger), Ok("three".into()));
}

fn spread_over(key: &str, skew: i32, when: &str) -> Value {
    let selector = json!({ "matchLabels": { "app": "web" } });
    let asked = json!({ "maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector });
    json!({ "topologySpreadConstraints": [asked] })
}

#[test]
fn domains_differ_by_no_more_than_the_skew() {
    let web = pod("p", "web", spread_over("zone", 1, "DoNotSchedule"));
    let ledger = with(&[("w1", "web", "one")]);
    assert_eq!(placed(&web, &ledger), Ok("three".into()));
    let ledger = with(&[("w1", "web", "one"), ("w2", "web", "three")]);
    assert_eq!(placed(&web, &ledger), Ok("two".into()), "both zones have one: the emptiest node");
    let unknown = pod("p", "web", spread_over("rack", 1, "DoNotSchedule"));
    let nowhere =
        "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label).";
    assert_eq!(placed(&unknown, &ledger), Err(nowhere.into()));
    let mut only = spread_over("zone", 1, "DoNotSchedule");
    only["nodeSelector"] = json!({ "zone": "a" });
    only["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = json!("Ignore");
    let nowhere = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
                   2 node(s) didn't match pod topology spread constraints.";
    assert_eq!(placed(&pod("p", "web", only.clone()), &with(&[("w1", "web", "one")])), Err(nowhere.into()));
    only["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = json!("Honor");
    assert_eq!(placed(&pod("p", "web", only), &with(&[("w1", "web", "one")])), Ok("two".into()));
}

#[test]
fn a_loose_constraint_only_prefers() {
    let web = pod("p", "web", spread_over("zone", 1, "ScheduleAnyway"));
    let ledger = with(&[("w1", "web", "one"), ("other", "other", "three")]);
    assert_eq!(placed(&web, &ledger), Ok("three".into()));
}
