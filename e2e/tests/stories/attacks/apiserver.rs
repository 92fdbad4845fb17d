//! Attacks on the API server: small, valid requests that ask for much work or memory, or for what their sender
//! may not do.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use kubewake_e2e::{ClusterUnderTest, curl::curl, http::HttpResponse, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What a server may take at most, in MiB, whatever is asked of it here. It takes some 60 when it starts, more
/// without optimisation.
const MEMORY_LIMIT_MIB: u64 = 400;

const WIDGETS: &str = "/apis/attacks.example.com/v1/namespaces/default/widgets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server, an administrator, and a tenant who may do little.
struct Stage {
    cluster: ClusterUnderTest,
    url: String,
    _tokens: TempDir,
}

#[derive(Clone, Copy)]
enum Caller {
    Admin,
    Tenant,
}

impl Caller {
    fn token(self) -> &'static str {
        match self {
            Self::Admin => "admin-token",
            Self::Tenant => "tenant-token",
        }
    }
}

impl Stage {
    /// None where stories are told on another cluster.
    fn start(args: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens.csv");
        std::fs::write(&tokens, "admin-token,admin,1,system:masters\ntenant-token,tenant,2,tenants\n").unwrap();
        let tokens = tokens.to_str().unwrap().to_owned();
        let cluster = ClusterUnderTest::start_with(&[&["--token-auth-file", &tokens], args].concat());
        if !cluster.is_embedded() {
            return None;
        }
        let kubeconfig = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
        let server = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap();
        let url = server.trim_matches('"').to_owned();
        Some(Self { cluster, url, _tokens: folder })
    }

    fn args(&self, caller: Caller, method: &str, path: &str) -> Vec<String> {
        let authorization = format!("Authorization: Bearer {}", caller.token());
        let url = format!("{}{path}", self.url);
        ["--insecure", "--request", method, "--header", &authorization, &url].map(str::to_owned).to_vec()
    }

    fn send(&self, caller: Caller, method: &str, path: &str, content_type: &str, body: &str) -> HttpResponse {
        let mut args = self.args(caller, method, path);
        args.extend(["--header".to_owned(), format!("Content-Type: {content_type}")]);
        args.extend(["--header", "Expect:", "--data-binary", "@-"].map(str::to_owned));
        curl(args, body.as_bytes()).unwrap_or_else(|error| panic!("{method} {path}: no answer: {error}"))
    }

    fn post(&self, caller: Caller, path: &str, body: &Value) -> HttpResponse {
        self.send(caller, "POST", path, "application/json", &body.to_string())
    }

    fn get(&self, caller: Caller, path: &str, accept: &str) -> HttpResponse {
        let mut args = self.args(caller, "GET", path);
        args.extend(["--header".to_owned(), format!("Accept: {accept}")]);
        curl(args, b"").unwrap_or_else(|error| panic!("{path}: no answer: {error}"))
    }

    /// Lets the tenant do this in the namespace `default`.
    fn allow(&self, name: &str, rule: Value) {
        let role = json!({ "metadata": { "name": name }, "rules": [rule] });
        let base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
        assert_eq!(self.post(Caller::Admin, &format!("{base}/roles"), &role).status, 201);
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant" }],
        });
        assert_eq!(self.post(Caller::Admin, &format!("{base}/rolebindings"), &binding).status, 201);
    }

    /// Defines `widgets` with this schema of their spec.
    fn define(&self, spec: &Value) -> HttpResponse {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "widgets.attacks.example.com" },
            "spec": {
                "group": "attacks.example.com",
                "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
                "versions": [version],
            },
        });
        self.post(Caller::Admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
    }

    fn create_widget(&self, spec: &Value) {
        let widget = json!({
            "apiVersion": "attacks.example.com/v1",
            "kind": "Widget",
            "metadata": { "name": "one" },
            "spec": spec,
        });
        wait_until("widgets are served", || self.post(Caller::Admin, WIDGETS, &widget).status == 201);
    }

    /// Readers of a list that take a few bytes in a second.
    fn slow_readers(&self, caller: Caller, path: &str, accept: &str, count: usize) -> Vec<SlowReader> {
        let readers = (0..count).map(|number| {
            let output = self.cluster.folder().join(format!("read-{}-{number}", accept.replace(['/', '.'], "-")));
            let mut command = Command::new("curl");
            command.args([
                "--silent",
                "--http1.1",
                "--no-buffer",
                "--limit-rate",
                "2000",
                "--max-time",
                "120",
                "--noproxy",
                "*",
            ]);
            command.args(self.args(caller, "GET", path)).args(["--header", &format!("Accept: {accept}")]);
            let child = command.stdin(Stdio::null()).stdout(File::create(&output).unwrap()).spawn().expect("curl");
            SlowReader { child, output }
        });
        let readers: Vec<SlowReader> = readers.collect();
        wait_until("every reader has a part of the list", || readers.iter().all(|reader| has_bytes(&reader.output)));
        readers
    }

    fn peak_mib(&mut self) -> u64 {
        self.cluster.process().expect("it is ours").peak_mib()
    }
}

struct SlowReader {
    child: Child,
    output: PathBuf,
}

impl Drop for SlowReader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_bytes(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// `replace` five times, each of which makes ten characters of one.
fn growing(of: &str) -> String {
    format!("{of}{}.size() > 0", r#".replace("a", "aaaaaaaaaa")"#.repeat(5))
}

#[test]
fn expression_that_multiplies_takes_no_memory() {
    let Some(mut stage) = Stage::start(&[]) else { return };
    let rule = json!([{ "rule": growing("self.s") }]);
    let spec = json!({
        "type": "object",
        "properties": { "s": { "type": "string", "maxLength": 2000 } },
        "x-kubernetes-validations": rule,
    });
    let refused = stage.define(&spec);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("estimated rule cost exceeds budget"), "{}", refused.text());
    let base = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({
        "metadata": { "name": "growing" },
        "spec": {
            "matchConstraints": { "resourceRules": [
                { "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] },
            ] },
            "matchConditions": [{ "name": "has-text", "expression": "has(object.data) && 's' in object.data" }],
            "validations": [{ "expression": growing("object.data.s") }],
        },
    });
    let path = format!("{base}/validatingadmissionpolicies");
    assert_eq!(stage.post(Caller::Admin, &path, &policy).status, 201);
    let binding = json!({
        "metadata": { "name": "growing" },
        "spec": { "policyName": "growing", "validationActions": ["Deny"] },
    });
    let path = format!("{base}/validatingadmissionpolicybindings");
    assert_eq!(stage.post(Caller::Admin, &path, &binding).status, 201);
    let map = json!({ "metadata": { "generateName": "bomb-" }, "data": { "s": "a".repeat(2000) } });
    wait_until("the policy is in force", || stage.post(Caller::Admin, CONFIG_MAPS, &map).status == 422);
    let refused = stage.post(Caller::Admin, CONFIG_MAPS, &map);
    assert!(refused.text().contains("cost limit exceeded"), "{}", refused.text());
    let plain = json!({ "metadata": { "name": "plain" }, "data": { "t": "fine" } });
    assert_eq!(stage.post(Caller::Admin, CONFIG_MAPS, &plain).status, 201, "others are served");
    let peak = stage.peak_mib();
    assert!(peak < MEMORY_LIMIT_MIB, "{peak} MiB");
}

#[test]
fn patch_that_moves_many_items_is_refused() {
    let Some(stage) = Stage::start(&[]) else { return };
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    assert_eq!(stage.define(&json!({ "type": "object", "properties": { "a": list } })).status, 201);
    stage.create_widget(&json!({ "a": vec![1; 200_000] }));
    let moves = vec![json!({ "op": "move", "from": "/spec/a/0", "path": "/spec/a/0" }); 10_000];
    let path = format!("{WIDGETS}/one?dryRun=All");
    let body = Value::from(moves).to_string();
    let refused = stage.send(Caller::Admin, "PATCH", &path, "application/json-patch+json", &body);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let few = r#"[{"op":"remove","path":"/spec/a/0"},{"op":"add","path":"/spec/a/0","value":7}]"#;
    assert_eq!(stage.send(Caller::Admin, "PATCH", &path, "application/json-patch+json", few).status, 200);
}

#[test]
fn create_that_is_limited_to_names_stays_so_with_a_selector() {
    let Some(stage) = Stage::start(&[]) else { return };
    stage.allow(
        "limited",
        json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "deletecollection"],
            "resourceNames": ["allowed"] }),
    );
    let other = json!({ "metadata": { "name": "other" } });
    let selected = format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dallowed");
    assert_eq!(stage.post(Caller::Tenant, CONFIG_MAPS, &other).status, 403);
    assert_eq!(stage.post(Caller::Tenant, &selected, &other).status, 403);
    assert_eq!(stage.get(Caller::Tenant, &selected, "application/json").status, 200, "a list is about the one object");
    assert_eq!(stage.get(Caller::Tenant, CONFIG_MAPS, "application/json").status, 403);
    assert_eq!(stage.get(Caller::Admin, &format!("{CONFIG_MAPS}/other"), "application/json").status, 404);
}

#[test]
fn deep_object_cannot_be_made_by_a_patch() {
    let Some(stage) = Stage::start(&[]) else { return };
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    assert_eq!(stage.define(&open).status, 201);
    stage.create_widget(&json!({}));
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let path = format!("{WIDGETS}/one");
    let merge = format!(r#"{{"spec":{{"a":{}}}}}"#, nested(110));
    let refused = stage.send(Caller::Admin, "PATCH", &path, "application/merge-patch+json", &merge);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let add = format!(r#"[{{"op":"add","path":"/spec/a","value":{}}}]"#, nested(110));
    assert_eq!(stage.send(Caller::Admin, "PATCH", &path, "application/json-patch+json", &add).status, 422);
    let merge = format!(r#"{{"spec":{{"a":{}}}}}"#, nested(98));
    assert_eq!(stage.send(Caller::Admin, "PATCH", &path, "application/merge-patch+json", &merge).status, 200);
    for (query, accept) in [("", "application/yaml"), ("?pretty=true", "application/json"), ("", "application/json")] {
        let list = stage.get(Caller::Admin, &format!("{WIDGETS}{query}"), accept);
        assert!(
            list.status == 200 && list.text().contains("WidgetList") && list.text().contains("creationTimestamp"),
            "{accept} {query}: {}",
            list.text()
        );
    }
}

/// Makes this many MiB of ConfigMaps.
fn fill(stage: &Stage, mebibytes: usize) {
    let text = "line of text\n".repeat(78_000);
    for number in 0..mebibytes {
        let map = json!({ "metadata": { "name": format!("large-{number}") }, "data": { "text": text } });
        let made = stage.post(Caller::Admin, CONFIG_MAPS, &map);
        assert_eq!(made.status, 201, "{}", made.text());
    }
}

#[test]
fn lists_that_nobody_reads_are_not_held_in_memory() {
    let Some(mut stage) = Stage::start(&[]) else { return };
    fill(&stage, 12);
    let forms = [
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json",
    ];
    let path = format!("{CONFIG_MAPS}?includeObject=Object");
    let _readers: Vec<_> = forms.iter().map(|accept| stage.slow_readers(Caller::Admin, &path, accept, 8)).collect();
    // Each in memory as a whole would be 12 MiB and three times as much on the way.
    let peak = stage.peak_mib();
    assert!(peak < MEMORY_LIMIT_MIB, "{peak} MiB");
}

#[test]
fn requests_above_the_limit_are_refused_and_administrators_are_served() {
    let Some(stage) = Stage::start(&["--max-requests-inflight", "2"]) else { return };
    stage.allow("reader", json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"] }));
    fill(&stage, 12);
    let readers = stage.slow_readers(Caller::Tenant, CONFIG_MAPS, "application/json", 2);
    let refused = stage.get(Caller::Tenant, &format!("{CONFIG_MAPS}/large-0"), "application/json");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.text(), "Too many requests, please try again later.\n");
    assert_eq!(stage.get(Caller::Admin, &format!("{CONFIG_MAPS}/large-0"), "application/json").status, 200);
    let map = json!({ "metadata": { "name": "more" } });
    assert_eq!(stage.post(Caller::Tenant, CONFIG_MAPS, &map).status, 403, "writes have places of their own");
    drop(readers);
    wait_until("the places are free again", || {
        stage.get(Caller::Tenant, &format!("{CONFIG_MAPS}/large-0"), "application/json").status == 200
    });
}
