//! How commands reach a cluster.

use std::path::Path;

use anyhow::Context;
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
