//! How commands reach a cluster.

use std::path::Path;

use anyhow::Context;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// By the given kubeconfig, else as kubectl finds it, else as a pod does.
pub(crate) async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    let Some(path) = kubeconfig else {
        return Config::infer().await.context("there is no cluster: name one by --kubeconfig or KUBECONFIG");
    };
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

/// The same, as a client.
pub(crate) async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}
