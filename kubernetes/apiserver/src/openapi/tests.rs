mod custom;

use std::collections::BTreeSet;

use proptest::prelude::*;
use prost::Message as _;
use serde_json::Value;

use super::*;
use crate::discovery::testing::{BUILTIN, catalog_with, widgets};

const CONTAINER: &str = "/components/schemas/io.k8s.api.core.v1.Container/properties";

fn get(catalog: &Catalog, path: &str) -> Value {
    let found = lookup_document(catalog, path, "", Some("application/json")).unwrap();
    assert_eq!((found.status, found.content_type), (200, "application/json"), "{path}");
    serde_json::from_slice(&found.body).unwrap()
}

fn keys(catalog: &Catalog) -> Vec<String> {
    get(catalog, "/openapi/v3")["paths"].as_object().unwrap().keys().cloned().collect()
}

/// Every reference in a document.
fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str));
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn assert_resolved(document: &Value, prefix: &str, schemas: &Value) {
    let mut found = BTreeSet::new();
    references(document, &mut found);
    for reference in found {
        let name = reference.strip_prefix(prefix).unwrap();
        assert!(schemas.get(name).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_reference_resolves_and_every_schema_is_needed() {
    let catalog = catalog_with([widgets("example.com", "v1")]);
    for key in keys(&catalog) {
        let document = get(&catalog, &format!("/openapi/v3/{key}"));
        let schemas = &document["components"]["schemas"];
        assert_resolved(&document, "#/components/schemas/", schemas);
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for name in schemas.as_object().unwrap().keys() {
            assert!(found.contains(SchemaDialect::V3.address(name).as_str()), "{key}: nothing refers to {name}");
        }
    }
    let swagger = get(&catalog, "/openapi/v2");
    assert_resolved(&swagger, "#/definitions/", &swagger["definitions"]);
}

#[test]
fn every_resource_has_its_paths_and_every_operation_its_own_name() {
    let catalog = catalog_with([widgets("example.com", "v1")]);
    for resource in catalog.all() {
        let root = document::root(&resource.gv);
        let document = get(&catalog, &format!("/openapi/v3{root}"));
        let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{root}{place}/{}", resource.plural);
        for (verb, path, method) in [
            ("list", collection.clone(), "get"),
            ("create", collection.clone(), "post"),
            ("deletecollection", collection.clone(), "delete"),
            ("get", format!("{collection}/{{name}}"), "get"),
            ("update", format!("{collection}/{{name}}"), "put"),
            ("patch", format!("{collection}/{{name}}"), "patch"),
            ("delete", format!("{collection}/{{name}}"), "delete"),
        ] {
            let there = document["paths"].get(&path).is_some_and(|item| item.get(method).is_some());
            assert_eq!(there, resource.verbs.contains(&verb), "{verb} {path}");
        }
        for sub in &resource.subresources {
            assert!(document["paths"].get(format!("{collection}/{{name}}/{}", sub.name)).is_some());
        }
        let items = document["paths"].as_object().unwrap().values();
        let operations =
            items.flat_map(|item| item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters"));
        let ids: Vec<&str> = operations.map(|(_, operation)| operation["operationId"].as_str().unwrap()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }
}

#[test]
fn an_operation_says_what_it_takes() {
    let document = get(&BUILTIN, "/openapi/v3/apis/apps/v1");
    let item = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    let names = |parameters: &Value| -> Vec<String> {
        parameters.as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&item["parameters"]), ["name", "namespace", "pretty"]);
    assert_eq!(names(&item["patch"]["parameters"]), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(item["patch"]["operationId"], "patchAppsV1NamespacedDeployment");
    assert_eq!(item["patch"]["x-kubernetes-action"], "patch");
    let gvk = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    assert_eq!(item["patch"]["x-kubernetes-group-version-kind"], gvk);
    let media: Vec<&String> = item["patch"]["requestBody"]["content"].as_object().unwrap().keys().collect();
    let patches = ["apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json"];
    assert_eq!(media, patches.map(|patch| format!("application/{patch}")).iter().collect::<Vec<_>>());
    let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"];
    assert_eq!(scale["operationId"], "replaceAppsV1NamespacedDeploymentScale");
    assert_eq!(scale["x-kubernetes-group-version-kind"]["group"], "autoscaling");
    let all = &document["paths"]["/apis/apps/v1/deployments"];
    assert_eq!(all["get"]["operationId"], "listAppsV1DeploymentForAllNamespaces");
    assert!(names(&all["parameters"]).contains(&"watch".to_owned()));
    assert_eq!(all["get"].get("parameters"), None);
}

#[test]
fn connections_and_logs_have_parameters_of_their_own() {
    let document = get(&BUILTIN, "/openapi/v3/api/v1");
    let pods = "/api/v1/namespaces/{namespace}/pods/{name}";
    let proxy = &document["paths"][format!("{pods}/proxy/{{path}}")];
    assert_eq!(proxy["head"]["operationId"], "connectCoreV1HeadNamespacedPodProxyWithPath");
    let places: Vec<&Value> = proxy["parameters"].as_array().unwrap().iter().map(|of| &of["in"]).collect();
    assert_eq!(places, ["path", "path", "path", "query"]);
    let log = &document["paths"][format!("{pods}/log")]["get"];
    assert_eq!(log["responses"]["200"]["content"]["text/plain"]["schema"], json!({"type": "string"}));
    let deleted = |path: &str| {
        let schema = &document["paths"][path]["delete"]["responses"]["200"]["content"]["application/json"]["schema"];
        schema["$ref"].as_str().unwrap().rsplit('.').next().unwrap().to_owned()
    };
    assert_eq!(deleted(pods), "Pod");
    assert_eq!(deleted("/api/v1/namespaces/{name}"), "Status");
}

#[test]
fn types_keep_what_merges_and_defaults_need() {
    let document = get(&BUILTIN, "/openapi/v3/apis/apps/v1");
    let field = |name: &str| document.pointer(CONTAINER).unwrap()[name].clone();
    let ports = json!({"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.ContainerPort"},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "containerPort"});
    assert_eq!(field("ports"), ports);
    assert_eq!(field("name"), json!({"type": "string", "default": ""}));
    let resources = json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.ResourceRequirements"});
    assert_eq!(field("resources"), json!({"allOf": [resources], "default": {}}));
    let policies = json!({"type": "string", "enum": ["Always", "IfNotPresent", "Never"]});
    assert_eq!(field("imagePullPolicy"), policies);
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    let gvk = json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
    assert_eq!(deployment["x-kubernetes-group-version-kind"], gvk);
    let schemas = &document["components"]["schemas"];
    let options = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"];
    assert_eq!(options.as_array().unwrap().len(), 2, "of the core group and of this one");
    let int_or_string = json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]});
    assert_eq!(schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"], int_or_string);
    let unions =
        json!([{"discriminator": "type", "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"}}]);
    assert_eq!(schemas["io.k8s.api.core.v1.SeccompProfile"]["x-kubernetes-unions"], unions);
}

#[test]
fn the_index_leads_to_every_document_by_its_hash() {
    let catalog = catalog_with([widgets("example.com", "v1")]);
    let index = get(&catalog, "/openapi/v3");
    let keys = keys(&catalog);
    for key in ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "apis/example.com/v1", "version"] {
        assert!(keys.iter().any(|known| known == key), "{key}");
    }
    assert!(!keys.contains(&"apis/example.com".to_owned()));
    for key in keys {
        let address = index["paths"][&key]["serverRelativeURL"].as_str().unwrap();
        let (path, query) = address.split_once('?').unwrap();
        assert_eq!(path, format!("/openapi/v3/{key}"));
        let found = lookup_document(&catalog, path, query, None).unwrap();
        assert_eq!(found.status, 200);
        assert_eq!(found.header("etag").unwrap().trim_matches('"'), query.strip_prefix("hash=").unwrap());
        assert!(found.header("cache-control").unwrap().contains("immutable"));
        let old = lookup_document(&catalog, path, "hash=OLD&timeout=32s", None).unwrap();
        assert_eq!((old.status, old.header("location")), (301, Some(address)));
    }
    assert_eq!(get(&catalog, "/openapi/v3/"), index);
}

#[test]
fn a_hash_changes_with_its_document_only() {
    let hashes = |catalog: &Catalog| get(catalog, "/openapi/v3")["paths"].clone();
    let before = hashes(&catalog_with([widgets("hash.example.com", "v1")]));
    let same = hashes(&catalog_with([widgets("hash.example.com", "v1")]));
    assert_eq!(before, same);
    let schema = crate::schema::Schema { description: "new".into(), ..Default::default() };
    let changed = crate::registry::ServedResource { schema: schema.into(), ..widgets("hash.example.com", "v1") };
    let after = hashes(&catalog_with([changed]));
    assert_ne!(before["apis/hash.example.com/v1"], after["apis/hash.example.com/v1"]);
    assert_eq!(before["apis/apps/v1"], after["apis/apps/v1"]);
}

#[test]
fn what_is_not_there_or_not_in_that_form_is_refused_without_a_body() {
    let status =
        |path: &str, accept| lookup_document(&BUILTIN, path, "", accept).map(|found| (found.status, found.body.len()));
    assert_eq!(status("/openapi/v3/apis/nope/v1", None), Some((404, 0)));
    let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    assert_eq!(status("/openapi/v3/api/v1", Some(protobuf)), Some((406, 0)));
    assert_eq!(status("/openapi/v3", Some("text/html")), Some((406, 0)));
    assert_eq!(status("/openapi/v2", Some("text/html")), Some((406, 0)));
    assert_eq!(status("/openapi", None), None);
    assert_eq!(status("/openapi/v30", None), None);
    assert_eq!(status("/version", None), None);
}

#[test]
fn the_version_has_a_document() {
    let document = get(&BUILTIN, "/openapi/v3/version");
    assert_eq!(document["info"], json!({"title": "Kubernetes", "version": "1.35"}));
    assert_eq!(document["paths"]["/version/"]["get"]["operationId"], "getCodeVersion");
    let info = &document["components"]["schemas"]["io.k8s.apimachinery.pkg.version.Info"];
    assert_eq!(info["required"].as_array().unwrap().len(), 9);
    assert_eq!(info["properties"]["buildDate"], json!({"type": "string", "default": ""}));
    assert_eq!(info["properties"]["emulationMajor"].get("default"), None);
}

/// The parts of gnostic's messages that tests read.
mod message {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Document {
        #[prost(string, tag = "1")]
        pub swagger: String,
        #[prost(message, optional, tag = "8")]
        pub paths: Option<Paths>,
        #[prost(message, optional, tag = "9")]
        pub definitions: Option<Schemas>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Paths {
        #[prost(message, repeated, tag = "2")]
        pub named: Vec<NamedPath>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct NamedPath {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(message, optional, tag = "2")]
        pub item: Option<PathItem>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct PathItem {
        #[prost(message, optional, tag = "8")]
        pub patch: Option<Operation>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Operation {
        #[prost(string, repeated, tag = "7")]
        pub consumes: Vec<String>,
        #[prost(message, repeated, tag = "8")]
        pub parameters: Vec<Nested>,
        #[prost(message, repeated, tag = "13")]
        pub extensions: Vec<NamedAny>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Nested {
        #[prost(message, optional, tag = "1")]
        pub parameter: Option<Parameter>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Parameter {
        #[prost(message, optional, tag = "2")]
        pub other: Option<NonBody>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct NonBody {
        #[prost(message, optional, tag = "3")]
        pub query: Option<Query>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Query {
        #[prost(string, tag = "4")]
        pub name: String,
        #[prost(string, tag = "6")]
        pub of: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Schemas {
        #[prost(message, repeated, tag = "1")]
        pub named: Vec<Named>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Named {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(message, optional, tag = "2")]
        pub schema: Option<Schema>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Schema {
        #[prost(string, tag = "1")]
        pub reference: String,
        #[prost(double, tag = "9")]
        pub minimum: f64,
        #[prost(string, repeated, tag = "19")]
        pub required: Vec<String>,
        #[prost(message, optional, tag = "25")]
        pub properties: Option<Schemas>,
        #[prost(message, repeated, tag = "31")]
        pub extensions: Vec<NamedAny>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct NamedAny {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(message, optional, tag = "2")]
        pub value: Option<Any>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Any {
        #[prost(string, tag = "2")]
        pub yaml: String,
    }
}

#[test]
fn the_second_version_is_the_same_in_both_forms() {
    let catalog = catalog_with([widgets("example.com", "v1")]);
    let json = get(&catalog, "/openapi/v2");
    assert_eq!(json["swagger"], "2.0");
    let found = lookup_document(&catalog, "/openapi/v2", "", Some(V2_PROTOBUF_ACCEPT)).unwrap();
    assert_eq!((found.status, found.content_type), (200, V2_PROTOBUF_CONTENT_TYPE));
    let document = message::Document::decode(&found.body[..]).unwrap();
    assert_eq!(document.swagger, "2.0");
    let named = document.definitions.unwrap().named;
    let names: BTreeSet<&str> = named.iter().map(|of| of.name.as_str()).collect();
    let definitions = json["definitions"].as_object().unwrap();
    assert_eq!(names, definitions.keys().map(String::as_str).collect());
    for message::Named { name, schema } in &named {
        let schema = schema.as_ref().unwrap();
        let properties: Vec<&str> =
            schema.properties.iter().flat_map(|of| &of.named).map(|of| of.name.as_str()).collect();
        let known = definitions[name]["properties"].as_object().into_iter().flatten();
        assert_eq!(properties, known.map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        for message::NamedAny { name: key, value } in &schema.extensions {
            let value: Value = serde_json::from_str(&value.as_ref().unwrap().yaml).unwrap();
            assert_eq!(value, definitions[name][key]);
        }
    }
    let deployment = &definitions["io.k8s.api.apps.v1.Deployment"];
    let spec = json!({"$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"});
    assert_eq!(deployment["properties"]["spec"], spec);
}

#[test]
fn the_second_version_says_how_objects_are_patched() {
    let catalog = catalog_with([widgets("example.com", "v1")]);
    let json = get(&catalog, "/openapi/v2");
    let found = lookup_document(&catalog, "/openapi/v2", "", Some(V2_PROTOBUF_ACCEPT)).unwrap();
    let document = message::Document::decode(&found.body[..]).unwrap();
    let paths = document.paths.unwrap().named;
    assert_eq!(paths.len(), json["paths"].as_object().unwrap().len());
    let patch = |path: &str| paths.iter().find(|one| one.name == path).unwrap().item.clone().unwrap().patch.unwrap();
    let deployments = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let operation = patch(deployments);
    assert_eq!(json!(operation.consumes), json["paths"][deployments]["patch"]["consumes"]);
    let strategic = "application/strategic-merge-patch+json".to_owned();
    assert!(operation.consumes.contains(&strategic));
    let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"}).to_string();
    assert!(operation.extensions.iter().any(|one| one.value.as_ref().unwrap().yaml == kind));
    let queries: Vec<(String, String)> = operation
        .parameters
        .into_iter()
        .filter_map(|one| one.parameter?.other?.query)
        .map(|query| (query.name, query.of))
        .collect();
    assert!(queries.contains(&("dryRun".into(), "string".into())), "{queries:?}");
    assert!(queries.contains(&("force".into(), "boolean".into())), "{queries:?}");
    let widgets = patch("/apis/example.com/v1/namespaces/{namespace}/widgets/{name}");
    assert!(!widgets.consumes.contains(&strategic) && !widgets.consumes.is_empty());
}

proptest! {
    #[test]
    fn nothing_asked_panics(path in "/openapi/?(v2|v3)?/?[a-z0-9./%é-]{0,20}", query in ".{0,30}", accept in ".{0,60}") {
        let _ = lookup_document(&BUILTIN, &path, &query, Some(&accept));
    }
}
