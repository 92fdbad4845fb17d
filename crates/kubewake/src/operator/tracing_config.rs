//! `kubewake operator tracing-config`: what makes a kube-apiserver send its spans to the pipelines.
//!
//! A kube-apiserver runs in the network of its machine and asks that machine's DNS, which knows no Service. So
//! the file has the Service's address. It speaks gRPC without TLS only, which is what the collectors receive.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Service;
use kube::Api;

use crate::kube_client::new_client;

/// The Service that senders know, and its port for gRPC.
const OTLP_SERVICE: &str = "kubewake-otlp";
const OTLP_GRPC_PORT: u16 = 4317;

/// Arguments of `kubewake operator tracing-config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake operator tracing-config > /etc/kubernetes/tracing.yaml
  kubewake operator tracing-config --sampling-rate-per-million 1000000

Use the file with the flag --tracing-config-file of kube-apiserver. Create the file again if all pipelines were
deleted in the meantime: the Service is deleted with the last pipeline, and a new Service has another address.")]
pub(super) struct TracingConfigArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = "kubewake-system")]
    namespace: String,
    /// How many requests per million start a trace; requests of sampled traces are always recorded
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    sampling_rate_per_million: u32,
}

pub(super) async fn run(args: &TracingConfigArgs) -> anyhow::Result<()> {
    let client = new_client(args.kubeconfig.as_deref()).await?;
    let services: Api<Service> = Api::namespaced(client.clone(), &args.namespace);
    let service =
        services.get_opt(OTLP_SERVICE).await.with_context(|| format!("failed to get Service {OTLP_SERVICE}"))?;
    let version = client.apiserver_version().await.context("failed to get the version of the API server")?;
    let service = service.with_context(|| {
        format!(
            "there is no Service {OTLP_SERVICE} in namespace {}: the operator creates the Service with the first valid pipeline",
            args.namespace
        )
    })?;
    print!("{}", render_config(service_endpoint(&service)?, &version.minor, args.sampling_rate_per_million));
    Ok(())
}

/// Where the Service is.
fn service_endpoint(service: &Service) -> anyhow::Result<SocketAddr> {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    let Ok(address) = address.parse::<IpAddr>() else {
        bail!("Service {OTLP_SERVICE} has no cluster IP (clusterIP {address:?}), but kube-apiserver needs one")
    };
    Ok(SocketAddr::new(address, OTLP_GRPC_PORT))
}

/// In the newest version that the API server knows. All versions have the same fields.
fn render_config(endpoint: SocketAddr, minor: &str, rate: u32) -> String {
    let minor = minor.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u32::MAX);
    let version = match minor {
        34.. => "v1",
        27.. => "v1beta1",
        _ => "v1alpha1",
    };
    format!(
        "apiVersion: apiserver.config.k8s.io/{version}\nkind: TracingConfiguration\n\
         endpoint: \"{endpoint}\"\nsamplingRatePerMillion: {rate}\n"
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ServiceSpec;

    use super::*;

    fn service(address: &str) -> Service {
        let spec = ServiceSpec { cluster_ip: Some(address.to_owned()), ..ServiceSpec::default() };
        Service { spec: Some(spec), ..Service::default() }
    }

    #[test]
    fn the_address_is_the_service_s_in_either_family() {
        assert_eq!(service_endpoint(&service("10.96.3.4")).unwrap().to_string(), "10.96.3.4:4317");
        assert_eq!(service_endpoint(&service("fd00::7")).unwrap().to_string(), "[fd00::7]:4317");
        for none in ["None", ""] {
            let said = service_endpoint(&service(none)).unwrap_err().to_string();
            assert!(said.contains("has no cluster IP"), "{said}");
        }
    }

    #[test]
    fn every_api_server_gets_a_version_that_it_knows() {
        let at = "10.96.3.4:4317".parse().unwrap();
        assert_eq!(
            render_config(at, "36", 10_000),
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n\
             endpoint: \"10.96.3.4:4317\"\nsamplingRatePerMillion: 10000\n"
        );
        for (minor, version) in
            [("34", "/v1\n"), ("33+", "/v1beta1\n"), ("27", "/v1beta1\n"), ("26", "/v1alpha1\n"), ("", "/v1\n")]
        {
            assert!(render_config(at, minor, 1).contains(version), "{minor}");
        }
    }
}
