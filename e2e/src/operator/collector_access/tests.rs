use std::fs;

use super::*;
use crate::{
    HttpBackend,
    backend::accepted_reply,
    kubectl::{on_path, proxy},
};

#[test]
fn what_is_sent_by_an_api_server_comes_to_its_proxy_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let api = HttpBackend::start(|_| accepted_reply());
    let kubeconfig = folder.path().join("kubeconfig");
    let cluster = format!("{{name: c, cluster: {{server: \"http://{}\"}}}}", api.address());
    let text = format!("clusters: [{cluster}]\ncontexts: [{{name: c, context: {{cluster: c}}}}]\ncurrent-context: c\n");
    fs::write(&kubeconfig, text).unwrap();
    let Some(mut kubectl) = on_path(folder.path()) else { return };
    let (_proxy, at) = proxy(kubectl.env("KUBECONFIG", &kubeconfig));

    for args in [&[][..], &["--signal", "logs"]] {
        let report =
            start_sending_through_api_server(at, &[args, &["--requests", "1", "--spans", "10"]].concat()).finish();
        assert_eq!(report.items("acknowledged"), 10, "{report:?}");
    }
    let service = "/api/v1/namespaces/kubewake-system/services/kubewake-otlp:otlp-http/proxy";
    // Some versions of kubectl request the version first.
    let posted: Vec<_> = api.requests().into_iter().filter(|it| it.method == "POST").map(|it| it.path).collect();
    assert_eq!(posted, ["traces", "logs"].map(|signal| format!("{service}/v1/{signal}")));
}
