//! Arguments of `kubewake webhook`, and what they mean.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, ensure};
use http::Uri;
use jiff::{Span, SpanRelativeTo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewake_trail::{
    NamespaceTrust,
    carrier::AnnotationKeys,
    webhook::{
        PATH,
        select::{ResourcePattern, Select, parse_selector},
        webhook_target::WebhookTarget,
    },
};

/// Arguments of `kubewake webhook`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake webhook --kubeconfig ./kubeconfig --select apps/v1/deployments --select v1/configmaps
  kubewake webhook --select example.com/*/* --listen 0.0.0.0:9443 --service tracing/kubewake-webhook \\
    --certificate-secret tracing/kubewake-webhook

Spans go where OTEL_EXPORTER_OTLP_ENDPOINT and its kin say. Without an endpoint no spans are recorded and no traces begun: the API \
server's own context is put on objects, and objects are not stamped where it sends none.")]
pub(crate) struct WebhookArgs {
    /// What to stamp: GROUP/VERSION/RESOURCE, or VERSION/RESOURCE; each may be *; may be given more than once
    #[arg(long, value_name = "RESOURCES", required = true)]
    select: Vec<ResourcePattern>,
    /// Only in namespaces with these labels, as kubectl writes them [default: all but kube-system and kube-node-lease]
    #[arg(long, value_name = "LABELS", value_parser = parse_selector)]
    namespace_selector: Option<LabelSelector>,
    /// Only objects with these labels [default: all]
    #[arg(long, value_name = "LABELS", value_parser = parse_selector)]
    object_selector: Option<LabelSelector>,
    /// How to reach the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9443")]
    pub(crate) listen: SocketAddr,
    /// How the API server reaches it [default: https:// and where it listens]
    #[arg(long, value_name = "URL", conflicts_with = "service")]
    url: Option<Uri>,
    /// The Service that the API server reaches it by; its port is 443 unless given
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]")]
    service: Option<ServiceArg>,
    /// What the registration is called
    #[arg(long, value_name = "NAME", default_value = "kubewake-webhook")]
    pub(crate) name: String,
    /// Keep certificates in this Secret, so that replicas share them; in memory without it
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) certificate_secret: Option<NamespacedArg>,
    /// How long certificates live, as in 90d or 12h; they are renewed before [default: 90d]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) certificate_lifetime: Option<Duration>,
    /// The prefix of the annotations `traceparent` and `tracestate` [default: tracing.k8s.io]
    #[arg(long, value_name = "DOMAIN")]
    annotation_prefix: Option<String>,
    /// Believe contexts of writers in these namespaces only; may be given more than once
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "distrust_namespace")]
    trust_namespace: Vec<String>,
    /// Do not believe contexts of writers in these namespaces; may be given more than once
    #[arg(long, value_name = "NAMESPACE")]
    distrust_namespace: Vec<String>,
    /// Link contexts that are not believed
    #[arg(long)]
    link_untrusted: bool,
    /// How long to serve on when told to end, until API servers have learned to call another replica, as in 5s
    /// [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) shutdown_delay: Option<Duration>,
    /// Remove the registration when ending; otherwise API servers go on to call, and ignore that nobody answers
    #[arg(long)]
    pub(crate) unregister_on_exit: bool,
}

/// Something in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespacedArg {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
struct ServiceArg {
    name: NamespacedArg,
    port: u16,
}

impl WebhookArgs {
    /// The namespace of the Service that API servers call, if they call one.
    pub(crate) fn service_namespace(&self) -> Option<&str> {
        self.service.as_ref().map(|service| service.name.namespace.as_str())
    }

    /// What is selected.
    pub(crate) fn selected_resources(&self) -> Select {
        let mut select = Select::new(self.select.clone());
        select.namespaces = self.namespace_selector.clone().unwrap_or(select.namespaces);
        select.objects = self.object_selector.clone().unwrap_or(select.objects);
        select
    }

    /// Where a context is put.
    pub(crate) fn context_keys(&self) -> anyhow::Result<AnnotationKeys> {
        let prefix = self.annotation_prefix.as_deref();
        prefix.map_or_else(|| Ok(AnnotationKeys::default()), AnnotationKeys::new).context("--annotation-prefix")
    }

    /// Whose contexts are believed.
    pub(crate) fn context_trust(&self) -> NamespaceTrust {
        let trust = match self.trust_namespace.as_slice() {
            [] => NamespaceTrust::except(self.distrust_namespace.iter().cloned()),
            only => NamespaceTrust::only(only.iter().cloned()),
        };
        if self.link_untrusted { trust.link_others() } else { trust }
    }

    /// Where the API server finds what listens here.
    pub(crate) fn webhook_endpoint(&self, listens: SocketAddr) -> anyhow::Result<WebhookTarget> {
        match (&self.service, &self.url) {
            (Some(ServiceArg { name: of, port }), _) => Ok(WebhookTarget::from_service(&of.namespace, &of.name, *port)),
            (None, Some(url)) => WebhookTarget::from_url(url, PATH).with_context(|| format!("--url {url}")),
            (None, None) => WebhookTarget::from_listen_address(listens).with_context(|| {
                format!("who listens on {} must say how it is reached: --service or --url", listens.ip())
            }),
        }
    }
}

impl FromStr for NamespacedArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (namespace, name) = text.split_once('/').with_context(|| format!("{text:?} is not NAMESPACE/NAME"))?;
        let is_name = |part: &str| {
            let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
            !part.is_empty() && part.len() <= 253 && part.chars().all(allowed) && part.parse::<IpAddr>().is_err()
        };
        ensure!(is_name(namespace) && is_name(name), "{text:?} is not NAMESPACE/NAME");
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl FromStr for ServiceArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (of, port) = match text.split_once(':') {
            Some((of, port)) => (of, port.parse().with_context(|| format!("{port:?} is no port"))?),
            None => (text, 443),
        };
        Ok(Self { name: of.parse()?, port })
    }
}

fn parse_duration(text: &str) -> anyhow::Result<Duration> {
    let span: Span = text.parse().with_context(|| format!("{text:?} is no time such as 90d or 12h"))?;
    Ok(span.to_duration(SpanRelativeTo::days_are_24_hours())?.try_into()?)
}

#[cfg(test)]
mod tests;
