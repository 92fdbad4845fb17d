//! Who may do what.

use kubewake_e2e::{Kubectl, wait_until};
use serde_json::json;

use super::LONE;

#[test]
fn an_administrator_may_do_everything_and_a_stranger_nothing() {
    let Some(kubectl) = Kubectl::start() else { return };
    assert_eq!(kubectl.run_ok("auth can-i create pods").trim(), "yes");
    assert!(kubectl.run_ok("auth can-i --list").contains("*.*"));
    let refused = kubectl.run("auth can-i create pods --as=bob", "");
    assert_eq!((refused.code, refused.stdout.trim().starts_with("no")), (1, true), "{refused:?}");
    let refused = kubectl.run_failing("get pods --as=bob");
    assert!(
        refused.contains("Forbidden") && refused.contains("User \"bob\" cannot list resource \"pods\""),
        "{refused}"
    );
    assert!(kubectl.run_ok("auth can-i get /version --as=bob --as-group=system:authenticated").contains("yes"));
    if kubectl.is_at_least(28, "`auth whoami`") {
        assert!(kubectl.run_ok("auth whoami --as=bob --as-group=crew -o json").contains("\"crew\""));
    }
}

#[test]
fn a_role_lets_somebody_in() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok_with("create -f -", LONE);
    kubectl.run_ok("create role reader --verb=get,list,watch --resource=pods,pods/log");
    kubectl.run_ok("create role scaler --verb=patch --resource=deployments.apps/scale --resource-name=web");
    kubectl.run_ok("create rolebinding readers --role=reader --user=bob");
    kubectl.run_ok("create rolebinding viewers --clusterrole=view --group=guests");
    assert!(kubectl.run_ok("get pods --as=bob").contains("lone"));
    assert!(kubectl.run_ok("auth can-i --list --as=bob").contains("pods/log"));
    assert!(kubectl.run_failing("delete pod lone --as=bob").contains("cannot delete resource \"pods\""));
    assert!(kubectl.run_failing("get pods --as=bob -n kube-system").contains("Forbidden"));
    kubectl.run_ok("get configmaps --as=ann --as-group=guests");
    assert!(kubectl.run_failing("get secrets --as=ann --as-group=guests").contains("Forbidden"));
    kubectl.run_ok("set subject rolebinding/readers --user=carl");
    assert!(kubectl.run_ok("get pods --as=carl").contains("lone"));
    kubectl.run_ok("delete rolebinding readers");
    assert!(kubectl.run_failing("get pods --as=carl").contains("Forbidden"));
    let grown = kubectl.run_ok("describe role reader");
    assert!(grown.contains("pods/log"), "{grown}");
}

#[test]
fn nobody_grants_more_than_he_holds() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok("create role manager --verb=get,create --resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io");
    kubectl.run_ok("create rolebinding managers --role=manager --user=bob");
    let refused = kubectl.run_failing("create role more --verb=get --resource=secrets --as=bob");
    assert!(refused.contains("is attempting to grant RBAC permissions not currently held"), "{refused}");
    kubectl.run_ok("create role same --verb=get --resource=roles.rbac.authorization.k8s.io --as=bob");
}

#[test]
fn roles_are_reconciled_from_a_file() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run_ok("create role reader --verb=get --resource=pods");
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let metadata = json!({"name": "reader", "namespace": kubectl.namespace()});
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [rule]});
    kubectl.run_ok_with("auth reconcile -f -", &role.to_string());
    assert_eq!(kubectl.json("role reader")["rules"].as_array().unwrap().len(), 2);
}

#[test]
fn a_service_account_gets_a_token_and_may_what_its_role_says() {
    let Some(kubectl) = Kubectl::start() else { return };
    if !kubectl.is_at_least(24, "`create token`") {
        return;
    }
    kubectl.run_ok("create serviceaccount robot");
    kubectl.run_ok("create role reader --verb=list --resource=configmaps");
    let account = format!("--serviceaccount={}:robot", kubectl.namespace());
    kubectl.run_ok(&format!("create rolebinding robots --role=reader {account}"));
    let token = kubectl.run_ok("create token robot --duration=10m");
    // The administrator's certificate would speak louder than the token.
    let config = kubectl.run_ok("config view --raw --minify -o json");
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let file = kubectl.cluster().folder().join("robot.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let as_robot = |command: &str| format!("{command} --kubeconfig={}", file.display());
    kubectl.run_ok(&as_robot("get configmaps"));
    let refused = kubectl.run_failing(&as_robot("get secrets"));
    assert!(refused.contains(&format!("system:serviceaccount:{}:robot", kubectl.namespace())), "{refused}");
    kubectl.run_ok("delete serviceaccount robot");
    // An API server may take a token that it has seen for some seconds more: kube-apiserver does so for ten.
    wait_until("the token of the deleted account is refused", || {
        kubectl.run(&as_robot("get configmaps"), "").stderr.contains("Unauthorized")
    });
    config["users"][0]["user"] = json!({"token": "made.up.token"});
    std::fs::write(&file, config.to_string()).unwrap();
    assert!(kubectl.run_failing(&as_robot("get configmaps")).contains("Unauthorized"));
}
