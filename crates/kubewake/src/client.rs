//! How commands reach a cluster.

use std::path::Path;

use anyhow::Context;
#[cfg(feature = "operator")]
use http::{HeaderName, HeaderValue};
use kube::{Client, Config};
use kubewake_trail::{Trail, connect};

/// By the given kubeconfig, else as kubectl finds it, else as a pod does.
pub(crate) async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    Ok(connect::config(kubeconfig).await?)
}

/// The same, as a client that says whom it cannot reach.
pub(crate) async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let config = config(kubeconfig).await?;
    Trail::off().client(config).with_context(|| match kubeconfig {
        Some(file) => format!("the kubeconfig {} cannot be used", file.display()),
        None => "the kubeconfig cannot be used".to_owned(),
    })
}

/// Of a trace that nobody records.
#[cfg(feature = "operator")]
const UNRECORDED: &str = "00-6b75626577616b656b75626577616b65-6b75626577616b65-00";

/// For requests that are of no interest to anybody: where the caller is believed, they leave no trace.
#[cfg(feature = "operator")]
pub(crate) fn quiet(mut config: Config) -> Config {
    config.headers.push((HeaderName::from_static("traceparent"), HeaderValue::from_static(UNRECORDED)));
    config
}
