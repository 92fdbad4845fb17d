use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    testing::{BUILTIN, catalog_with, widgets},
    *,
};

const EVERY_FORM: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const GROUP: &str = "case-group.example.com";

fn get(catalog: &Catalog, path: &str) -> Value {
    let found = lookup_document(catalog, path, Some("application/json")).unwrap();
    assert_eq!((found.status, found.content_type), (200, "application/json"));
    serde_json::from_slice(&found.body).unwrap()
}

fn aggregated(catalog: &Catalog, path: &str) -> Value {
    let found = lookup_document(catalog, path, Some(AGGREGATED_MEDIA_TYPE)).unwrap();
    assert_eq!((found.status, found.content_type), (200, AGGREGATED_MEDIA_TYPE));
    serde_json::from_slice(&found.body).unwrap()
}

fn named<'v>(list: &'v Value, key: &str, name: &str) -> &'v Value {
    list.as_array().unwrap().iter().find(|item| item[key] == name).unwrap()
}

#[test]
fn the_core_group_has_one_version() {
    let expected = json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]});
    assert_eq!(get(&BUILTIN, "/api"), expected);
}

#[test]
fn groups_come_in_the_order_of_kubernetes_and_custom_ones_last() {
    let catalog = catalog_with([widgets("zebra.example.com", "v1"), widgets("acme.example.com", "v1")]);
    let groups = get(&catalog, "/apis");
    let names: Vec<&str> = groups["groups"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]);
    assert_eq!(names[names.len() - 3..], ["resource.k8s.io", "acme.example.com", "zebra.example.com"]);
    let items = aggregated(&catalog, "/apis");
    let same: Vec<&str> =
        items["items"].as_array().unwrap().iter().map(|of| of["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, same);
}

#[test]
fn versions_are_sorted_as_kubernetes_does() {
    let sorted =
        ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v01"];
    for (at, better) in sorted.iter().enumerate() {
        for worse in &sorted[at + 1..] {
            assert!(groups::compare_versions(better, worse).is_lt(), "{better} before {worse}");
        }
    }
    let catalog = catalog_with(["v1alpha1", "v1", "v1beta1"].map(|version| widgets(GROUP, version)));
    let group = get(&catalog, &format!("/apis/{GROUP}"));
    let versions: Vec<&Value> = group["versions"].as_array().unwrap().iter().map(|of| &of["version"]).collect();
    assert_eq!(versions, ["v1", "v1beta1", "v1alpha1"]);
    assert_eq!(group["preferredVersion"], json!({"groupVersion": format!("{GROUP}/v1"), "version": "v1"}));
    assert_eq!(get(&BUILTIN, "/apis/autoscaling")["preferredVersion"]["version"], "v2");
}

#[test]
fn a_group_has_a_document_of_its_own() {
    let version = json!({"groupVersion": "apps/v1", "version": "v1"});
    let expected = json!({"kind": "APIGroup", "apiVersion": "v1", "name": "apps", "versions": [version],
        "preferredVersion": version});
    assert_eq!(get(&BUILTIN, "/apis/apps"), expected);
    assert_eq!(get(&BUILTIN, "/apis/apps/"), expected);
}

#[test]
fn resources_are_listed_with_their_parts() {
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let lease = json!({"name": "leases", "singularName": "lease", "namespaced": true, "kind": "Lease", "verbs": all,
        "storageVersionHash": "gqkMMb/YqFM="});
    let expected = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "coordination.k8s.io/v1",
        "resources": [lease]});
    assert_eq!(get(&BUILTIN, "/apis/coordination.k8s.io/v1"), expected);

    let core = get(&BUILTIN, "/api/v1/");
    assert_eq!(core.get("apiVersion"), None);
    assert_eq!(core["groupVersion"], "v1");
    let token = json!({"name": "serviceaccounts/token", "singularName": "", "namespaced": true,
        "group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest", "verbs": ["create"]});
    assert_eq!(*named(&core["resources"], "name", "serviceaccounts/token"), token);
    let review = json!({"name": "tokenreviews", "singularName": "tokenreview", "namespaced": false,
        "kind": "TokenReview", "verbs": ["create"]});
    assert_eq!(*named(&get(&BUILTIN, "/apis/authentication.k8s.io/v1")["resources"], "name", "tokenreviews"), review);
}

#[test]
fn custom_resources_are_listed_like_built_in_ones() {
    let catalog = catalog_with([widgets(GROUP, "v1")]);
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let expected = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/v1"),
    "resources": [
        {"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget", "verbs": verbs,
         "shortNames": ["wd"], "categories": ["all"], "storageVersionHash": "abc="},
        {"name": "widgets/status", "singularName": "", "namespaced": true, "kind": "Widget",
         "verbs": ["get", "patch", "update"]},
        {"name": "widgets/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1",
         "kind": "Scale", "verbs": ["get", "patch", "update"]},
    ]});
    assert_eq!(get(&catalog, &format!("/apis/{GROUP}/v1")), expected);

    let groups = aggregated(&catalog, "/apis");
    let group = groups["items"].as_array().unwrap().last().unwrap();
    let expected = json!({"metadata": {"name": GROUP}, "versions": [{"version": "v1", "freshness": "Current",
        "resources": [{"resource": "widgets", "responseKind": {"group": GROUP, "version": "v1", "kind": "Widget"},
            "scope": "Namespaced", "singularResource": "widget", "verbs": verbs, "shortNames": ["wd"],
            "categories": ["all"], "subresources": [
                {"subresource": "status", "responseKind": {"group": GROUP, "version": "v1", "kind": "Widget"},
                 "verbs": ["get", "patch", "update"]},
                {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                 "verbs": ["get", "patch", "update"]}]}]}]});
    assert_eq!(*group, expected);
}

#[test]
fn the_aggregated_document_leaves_out_where_built_in_kinds_are_from() {
    let list = aggregated(&BUILTIN, "/api");
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(list["metadata"], json!({}));
    assert_eq!(list["items"][0]["metadata"], json!({}));
    let namespaces = json!({"resource": "namespaces", "responseKind": {"group": "", "version": "", "kind": "Namespace"},
        "scope": "Cluster", "singularResource": "namespace", "shortNames": ["ns"],
        "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        "subresources": [
            {"subresource": "finalize", "responseKind": {"group": "", "version": "", "kind": "Namespace"},
             "verbs": ["update"]},
            {"subresource": "status", "responseKind": {"group": "", "version": "", "kind": "Namespace"},
             "verbs": ["get", "patch", "update"]}]});
    let resources = &list["items"][0]["versions"][0]["resources"];
    assert_eq!(*named(resources, "resource", "namespaces"), namespaces);
    let pods = &named(resources, "resource", "pods")["subresources"];
    let eviction = json!({"group": "policy", "version": "v1", "kind": "Eviction"});
    assert_eq!(named(pods, "subresource", "eviction")["responseKind"], eviction);
}

#[test]
fn the_form_is_the_first_that_the_caller_takes_and_we_have() {
    let form = |accept: Option<&str>| lookup_document(&BUILTIN, "/apis", accept).unwrap().content_type;
    assert_eq!(form(Some(EVERY_FORM)), AGGREGATED_MEDIA_TYPE);
    assert_eq!(form(Some(&format!("{AGGREGATED_MEDIA_TYPE};profile=nopeer,{EVERY_FORM}"))), AGGREGATED_MEDIA_TYPE);
    for accept in [
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
        "application/json",
        "*/*",
        "application/vnd.kubernetes.protobuf",
        "application/json;g=apidiscovery.k8s.io;v=v2",
        "nonsense;;,/",
    ] {
        assert_eq!(form(Some(accept)), JSON_MEDIA_TYPE, "{accept}");
    }
    assert_eq!(form(None), JSON_MEDIA_TYPE);
    let resources = lookup_document(&BUILTIN, "/apis/apps/v1", Some(EVERY_FORM)).unwrap();
    assert_eq!(resources.content_type, JSON_MEDIA_TYPE);
}

#[test]
fn what_is_not_served_is_not_found() {
    let unknown =
        ["/", "", "/api/v2", "/api/v1/pods", "/apis/", "/apis/nope", "/apis/apps/v2", "/apis/apps/v1/x", "/apis//v1"];
    for path in unknown.iter().filter(|path| **path != "/apis/") {
        assert_eq!(lookup_document(&BUILTIN, path, None), None, "{path}");
    }
    assert!(lookup_document(&BUILTIN, "/apis/", None).is_some());
}

#[test]
fn who_has_the_document_is_told_so() {
    let found = lookup_document(&BUILTIN, "/apis", Some(AGGREGATED_MEDIA_TYPE)).unwrap();
    let tag = found.header("etag").unwrap().to_owned();
    assert_eq!(found.header("vary"), Some("Accept"));
    assert_eq!(found.clone().revalidated(None), found);
    assert_eq!(found.clone().revalidated(Some("\"other\"")), found);
    let same = found.clone().revalidated(Some(&format!("\"other\", W/{tag}")));
    assert_eq!((same.status, same.body.len()), (304, 0));
    let more = lookup_document(&catalog_with([widgets(GROUP, "v1")]), "/apis", Some(AGGREGATED_MEDIA_TYPE)).unwrap();
    assert_ne!(more.header("etag"), Some(tag.as_str()));
}

proptest! {
    #[test]
    fn no_path_or_header_panics(path in "/(api|apis)?/?[a-z0-9./%é-]{0,20}", accept in ".{0,60}") {
        let _ = lookup_document(&BUILTIN, &path, Some(&accept));
    }
}
