//! Clients of the cluster for all commands.

use std::path::Path;

use anyhow::Context;
#[cfg(feature = "operator")]
use http::{HeaderName, HeaderValue};
use kube::{Client, Config};
use kubewake_trail::{Trail, connect};

/// From the given kubeconfig, else as kubectl finds it, else the in-cluster configuration.
pub(crate) async fn load_config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    Ok(connect::config(kubeconfig).await?)
}

/// Creates a client, with an error that names the cluster.
pub(crate) async fn new_client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let config = load_config(kubeconfig).await?;
    Trail::disabled().client(config).with_context(|| match kubeconfig {
        Some(file) => format!("failed to create a client for the kubeconfig {}", file.display()),
        None => "failed to create a client for the default kubeconfig".to_owned(),
    })
}

/// A trace context that is not sampled.
#[cfg(feature = "operator")]
const UNSAMPLED_TRACEPARENT: &str = "00-6b75626577616b656b75626577616b65-6b75626577616b65-00";

/// For background requests: an API server that trusts the trace context of its caller does not trace them.
#[cfg(feature = "operator")]
pub(crate) fn without_tracing(mut config: Config) -> Config {
    config.headers.push((HeaderName::from_static("traceparent"), HeaderValue::from_static(UNSAMPLED_TRACEPARENT)));
    config
}
