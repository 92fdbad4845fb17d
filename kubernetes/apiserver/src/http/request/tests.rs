use super::*;

fn get(path: &str) -> RequestInfo {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    RequestInfo::new(&Method::GET, path, query)
}

fn parts(path: &str) -> (String, String, String, String) {
    let resource = get(path).resource.unwrap();
    (resource.namespace, resource.resource, resource.name, resource.subresource)
}

fn texts(namespace: &str, resource: &str, name: &str, subresource: &str) -> (String, String, String, String) {
    (namespace.into(), resource.into(), name.into(), subresource.into())
}

#[test]
fn paths_of_objects_are_taken_apart() {
    assert_eq!(parts("/api/v1/pods"), texts("", "pods", "", ""));
    assert_eq!(parts("/api/v1/namespaces/a/pods/p/log"), texts("a", "pods", "p", "log"));
    assert_eq!(parts("/api/v1/namespaces"), texts("", "namespaces", "", ""));
    assert_eq!(parts("/api/v1/namespaces/a"), texts("a", "namespaces", "a", ""));
    assert_eq!(parts("/api/v1/namespaces/a/finalize"), texts("a", "namespaces", "a", "finalize"));
    assert_eq!(parts("/apis/apps/v1/namespaces/a/deployments/"), texts("a", "deployments", "", ""));
    assert_eq!(parts("/api/v1/watch/namespaces/a/pods"), texts("a", "pods", "", ""));
    assert_eq!(parts("/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab"), texts("", "clusterroles", "a:b", ""));
}

#[test]
fn paths_that_are_no_objects_have_the_method_as_verb() {
    for path in ["/", "/version", "/api", "/apis/apps", "/apis/apps/v1", "/api/v1"] {
        assert_eq!((get(path).verb, get(path).resource), ("get", None), "{path}");
    }
}

#[test]
fn verbs_depend_on_the_name_and_on_watch() {
    assert_eq!(get("/api/v1/pods").verb, "list");
    assert_eq!(get("/api/v1/pods?watch=1").verb, "watch");
    assert_eq!(get("/api/v1/pods?limit=1&watch=maybe").verb, "watch");
    assert_eq!(get("/api/v1/pods?watch=false").verb, "list");
    assert_eq!(get("/api/v1/watch/pods").verb, "watch");
    assert_eq!(get("/api/v1/namespaces/a/pods/p?watch=1").verb, "get");
    assert_eq!(RequestInfo::new(&Method::DELETE, "/api/v1/namespaces/a/pods", "").verb, "deletecollection");
}

#[test]
fn patterns_name_the_variable_parts() {
    let pattern = |path: &str| get(path).resource.unwrap().pattern();
    assert_eq!(pattern("/api/v1/namespaces/a/configmaps/b"), "/api/v1/namespaces/{:namespace}/configmaps/{:name}");
    assert_eq!(pattern("/apis/apps/v1/deployments"), "/apis/apps/v1/deployments");
    assert_eq!(pattern("/api/v1/namespaces/a"), "/api/v1/namespaces/{:name}");
}

#[test]
fn bad_escapes_stay() {
    assert_eq!(percent_decode("a%2Fb%zz%"), "a/b%zz%");
    assert_eq!(percent_decode("%ff"), "%ff");
}
