use std::fs;

use super::*;
use crate::{
    Backend,
    backend::taken,
    kubectl::{on_path, proxy},
};

#[test]
fn what_is_sent_by_an_api_server_comes_to_its_proxy_of_the_service() {
    let (folder, api) = (tempfile::tempdir().unwrap(), Backend::start(|_| taken()));
    let kubeconfig = folder.path().join("kubeconfig");
    let cluster = format!("{{name: c, cluster: {{server: \"http://{}\"}}}}", api.address());
    let text = format!("clusters: [{cluster}]\ncontexts: [{{name: c, context: {{cluster: c}}}}]\ncurrent-context: c\n");
    fs::write(&kubeconfig, text).unwrap();
    let Some(mut kubectl) = on_path(folder.path()) else { return };
    let (_proxy, at) = proxy(kubectl.env("KUBECONFIG", &kubeconfig));

    let report = sending_by(at, &["--requests", "3", "--spans", "10"]).finish();
    assert_eq!(report.items("acknowledged"), 30, "{report:?}");
    let path = "/api/v1/namespaces/kubewake-system/services/kubewake-otlp:otlp-http/proxy/v1/traces";
    let asked: Vec<_> = api.requests().into_iter().map(|it| (it.method, it.path)).collect();
    assert_eq!(asked, vec![("POST".to_owned(), path.to_owned()); 3]);
}
