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
use kubewake_trail::{NamespaceTrust, carrier::AnnotationKeys};
use kubewake_webhook::{
    stamping::{
        PATH,
        selection::{ObjectSelection, ResourcePattern, parse_selector},
    },
    target::WebhookTarget,
};

/// Arguments of `kubewake webhook`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake webhook --kubeconfig ./kubeconfig --select apps/v1/deployments --select v1/configmaps
  kubewake webhook --select example.com/*/* --listen 0.0.0.0:9443 --service tracing/kubewake-webhook \\
    --certificate-secret tracing/kubewake-webhook

The variables OTEL_EXPORTER_OTLP_… configure the export of spans. Without an endpoint the webhook records no spans and starts no traces: \
objects get only trace context that the API server sends.")]
pub(crate) struct WebhookArgs {
    /// Resource to stamp: GROUP/VERSION/RESOURCE, or VERSION/RESOURCE; each part can be *; can be repeated
    #[arg(long, value_name = "RESOURCES", required = true)]
    select: Vec<ResourcePattern>,
    /// Label selector of namespaces, in kubectl's notation [default: all but kube-system and kube-node-lease]
    #[arg(long, value_name = "LABELS", value_parser = parse_selector)]
    namespace_selector: Option<LabelSelector>,
    /// Label selector of objects [default: all]
    #[arg(long, value_name = "LABELS", value_parser = parse_selector)]
    object_selector: Option<LabelSelector>,
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9443")]
    pub(crate) listen: SocketAddr,
    /// URL at which the API server calls the webhook [default: https:// and the address of --listen]
    #[arg(long, value_name = "URL", conflicts_with = "service")]
    url: Option<Uri>,
    /// Service through which the API server calls the webhook, on port 443 unless given
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]")]
    service: Option<ServiceArg>,
    /// Name of the MutatingWebhookConfiguration
    #[arg(long, value_name = "NAME", default_value = "kubewake-webhook")]
    pub(crate) name: String,
    /// Secret for certificates, which replicas share [default: only in memory]
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) certificate_secret: Option<NamespacedArg>,
    /// Lifetime of certificates, such as 90d or 12h; renewal is automatic [default: 90d]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) certificate_lifetime: Option<Duration>,
    /// Prefix of the annotations `traceparent` and `tracestate` [default: tracing.k8s.io]
    #[arg(long, value_name = "DOMAIN")]
    annotation_prefix: Option<String>,
    /// Trust trace context only from writers in this namespace; can be repeated
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "distrust_namespace")]
    trust_namespace: Vec<String>,
    /// Do not trust trace context from writers in this namespace; can be repeated
    #[arg(long, value_name = "NAMESPACE")]
    distrust_namespace: Vec<String>,
    /// Link to untrusted trace context
    #[arg(long)]
    link_untrusted: bool,
    /// How long to continue serving after SIGTERM, until API servers call another replica, such as 5s
    /// [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) shutdown_delay: Option<Duration>,
    /// Delete the registration at the end; otherwise API servers continue to call the webhook, and ignore failed calls
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
    pub(crate) fn selected_resources(&self) -> ObjectSelection {
        let mut select = ObjectSelection::new(self.select.clone());
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
                format!("no address for the webhook, which listens on {}: set --service or --url", listens.ip())
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
            Some((of, port)) => (of, port.parse().with_context(|| format!("{port:?} is not a port"))?),
            None => (text, 443),
        };
        Ok(Self { name: of.parse()?, port })
    }
}

fn parse_duration(text: &str) -> anyhow::Result<Duration> {
    let span: Span =
        text.parse().with_context(|| format!("invalid duration {text:?}: write for example 90d or 12h"))?;
    Ok(span.to_duration(SpanRelativeTo::days_are_24_hours())?.try_into()?)
}

#[cfg(test)]
mod tests;
