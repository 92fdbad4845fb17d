//! Checks whether API servers can call the webhooks.

use http::Uri;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig},
    apps::v1::Deployment,
    core::v1::Service,
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
};
use kubewake_api::{render::OTLP_GRPC_PORT, v1alpha1::TracePipeline};
use kubewake_operator::names;
use kubewake_trail::error_chain;
use serde_json::json;

use super::{
    CheckContext,
    certificate::{self, CertificateValidity, HandshakeOutcome},
    codes::{self, CheckCode},
    operator::{self, DeploymentRollout, deployment_rollout},
    report::{CheckLine, CheckOutcome, CheckSection},
};
use crate::inventory::pods;

/// The check codes of one webhook.
struct WebhookCodes {
    registered: CheckCode,
    certificate: CheckCode,
    answers: CheckCode,
}

const OPERATOR_CODES: WebhookCodes =
    WebhookCodes { registered: codes::KW401, certificate: codes::KW402, answers: codes::KW403 };
const TRAIL_CODES: WebhookCodes =
    WebhookCodes { registered: codes::KW411, certificate: codes::KW412, answers: codes::KW413 };

/// How often a dry run checks that the API server calls the operator's webhook, each time on a new connection:
/// several API servers may share an address, and each has its own route to the Service.
const DRY_RUN_ATTEMPTS: usize = 3;
/// The argument that enables the operator's webhook.
const WEBHOOK_LISTEN_ARGUMENT: &str = "--webhook-listen";

/// The name of the trail webhook's Deployment, Service, registration and namespace.
const TRAIL_WEBHOOK_NAME: &str = "kubewake-webhook";

/// Either variable configures the export of spans.
const SPAN_ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

struct RegisteredWebhook {
    /// In kubectl's notation: `validatingwebhookconfiguration kubewake-operator`.
    object: String,
    codes: WebhookCodes,
    client: WebhookClientConfig,
    /// The command that restarts its controller.
    restart: String,
}

struct WebhookAddress {
    address: String,
    name: String,
    /// The Service of the webhook.
    service: Option<(String, String)>,
}

pub(super) async fn check(scene: &CheckContext<'_>) -> CheckSection {
    let mut lines = check_operator_webhook(scene).await;
    lines.extend(check_trail_webhooks(scene).await);
    CheckSection { name: "Webhooks", lines }
}

async fn check_operator_webhook(scene: &CheckContext<'_>) -> Vec<CheckLine> {
    let client = &scene.cluster.client;
    let namespace = &scene.args.cluster.namespace;
    let found = Api::<ValidatingWebhookConfiguration>::all(client.clone()).get_opt(names::FIELD_MANAGER).await;
    let registered = match found {
        Ok(Some(found)) => found.webhooks.unwrap_or_default().into_iter().next(),
        Ok(None) => None,
        Err(error) => return vec![unreadable_line(&OPERATOR_CODES, "validatingwebhookconfigurations", &error)],
    };
    let Some(registered) = registered else {
        let detail = "without a registration the API server accepts invalid pipelines, and authors of pipelines can reference every Secret";
        let operator = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(names::FIELD_MANAGER).await;
        let mend = match &operator {
            Ok(None) => {
                format!("{}   # with --webhook-listen the operator registers its webhook", operator::INSTALL_COMMAND)
            }
            _ => format!(
                "kubectl logs --namespace {namespace} deployment/{} --tail 20   # with --webhook-listen the operator registers its webhook",
                names::FIELD_MANAGER
            ),
        };
        return vec![if operator.ok().flatten().is_some_and(serves_webhook) {
            CheckLine::failed(codes::KW401, "the operator serves a webhook, but has not registered it yet", mend)
        } else {
            CheckLine::warned(codes::KW401, detail, mend)
        }];
    };
    let hook = RegisteredWebhook {
        object: format!("validatingwebhookconfiguration {}", names::FIELD_MANAGER),
        codes: OPERATOR_CODES,
        client: registered.client_config,
        restart: format!("kubectl rollout restart deployment/{} --namespace {namespace}", names::FIELD_MANAGER),
    };
    let mut lines = check_webhook(client, &hook).await;
    lines.push(check_called_by_all_servers(scene, &hook).await);
    lines
}

/// Whether the operator is installed with a webhook, which requires a registration.
fn serves_webhook(operator: Deployment) -> bool {
    let spec = operator.spec.and_then(|spec| spec.template.spec);
    let mut args = spec.into_iter().flat_map(|spec| spec.containers).flat_map(|it| it.args.unwrap_or_default());
    args.any(|arg| arg.starts_with(WEBHOOK_LISTEN_ARGUMENT))
}

/// Checks all registered trail webhooks, of which there may be none.
async fn check_trail_webhooks(scene: &CheckContext<'_>) -> Vec<CheckLine> {
    let client = &scene.cluster.client;
    let all = Api::<MutatingWebhookConfiguration>::all(client.clone()).list(&ListParams::default()).await;
    let all = match all {
        Ok(all) => all,
        Err(error) => return vec![unreadable_line(&TRAIL_CODES, "mutatingwebhookconfigurations", &error)],
    };
    let mut lines: Vec<CheckLine> =
        check_trail_deployment(scene, all.iter().any(|it| it.name_any() == TRAIL_WEBHOOK_NAME)).await;
    for found in all {
        let name = found.name_any();
        let ours = format!("stamp.{name}.kubewake.io");
        let webhooks = found.webhooks.unwrap_or_default();
        let Some(registered) = webhooks.into_iter().find(|webhook| webhook.name == ours) else { continue };
        let restart = restart_command(&name, &registered.client_config);
        let object = format!("mutatingwebhookconfiguration {name}");
        let hook = RegisteredWebhook { object, codes: TRAIL_CODES, client: registered.client_config, restart };
        lines.extend(check_webhook(client, &hook).await);
    }
    lines
}

/// Problems of the trail webhook's Deployment, if it is installed.
async fn check_trail_deployment(scene: &CheckContext<'_>, is_registered: bool) -> Vec<CheckLine> {
    let client = &scene.cluster.client;
    let found = Api::<Deployment>::namespaced(client.clone(), TRAIL_WEBHOOK_NAME).get_opt(TRAIL_WEBHOOK_NAME).await;
    let Ok(Some(deployment)) = found else { return Vec::new() };
    let mend = format!(
        "kubectl describe pods --namespace {TRAIL_WEBHOOK_NAME}\nkubectl logs --namespace {TRAIL_WEBHOOK_NAME} deployment/{TRAIL_WEBHOOK_NAME} --tail 20"
    );
    let mut lines = Vec::new();
    let DeploymentRollout { ready, wanted, is_done } = deployment_rollout(&deployment);
    if !is_done {
        let why =
            pods::find_deployment_problem(client, &deployment).await.map(|why| format!(": {why}")).unwrap_or_default();
        let detail = format!(
            "Deployment {TRAIL_WEBHOOK_NAME}/{TRAIL_WEBHOOK_NAME} is not rolled out: {ready} of {wanted} pods are ready{why}"
        );
        lines.push(CheckLine::warned(codes::KW413, detail, &mend).with_in_progress(true));
    }
    if !is_registered {
        let detail = format!("Deployment {TRAIL_WEBHOOK_NAME}/{TRAIL_WEBHOOK_NAME} has not registered its webhook yet");
        lines.push(CheckLine::warned(codes::KW411, detail, mend).with_in_progress(true));
    }
    if !names_span_endpoint(&deployment) {
        let detail = format!(
            "Deployment {TRAIL_WEBHOOK_NAME}/{TRAIL_WEBHOOK_NAME} does not set {}, so the webhook starts no traces: \
             objects are not stamped where the API server sends no trace context",
            SPAN_ENDPOINT_VARIABLES[0]
        );
        let mend = format!(
            "kubectl set env --namespace {TRAIL_WEBHOOK_NAME} deployment/{TRAIL_WEBHOOK_NAME} {}=http://{}.{}:{OTLP_GRPC_PORT}",
            SPAN_ENDPOINT_VARIABLES[0],
            names::OTLP_SERVICE,
            scene.args.cluster.namespace
        );
        lines.push(CheckLine::warned(codes::KW414, detail, mend));
    }
    lines
}

/// Whether a Deployment configures the export of spans. An `envFrom` is assumed to do so.
fn names_span_endpoint(deployment: &Deployment) -> bool {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.into_iter().flat_map(|pod| &pod.containers).any(|container| {
        let mut variables = container.env.iter().flatten();
        container.env_from.as_ref().is_some_and(|sources| !sources.is_empty())
            || variables.any(|variable| {
                let is_set = variable.value_from.is_some()
                    || variable.value.as_ref().is_some_and(|value| !value.trim().is_empty());
                is_set && SPAN_ENDPOINT_VARIABLES.contains(&variable.name.as_str())
            })
    })
}

/// The command that restarts a trail webhook. One without our manifests was started by hand, and may have been
/// ended for good: its registration stays.
fn restart_command(name: &str, client: &WebhookClientConfig) -> String {
    match client.service.as_ref().filter(|service| service.name == TRAIL_WEBHOOK_NAME) {
        Some(service) => {
            format!("kubectl rollout restart deployment/{TRAIL_WEBHOOK_NAME} --namespace {}", service.namespace)
        }
        None => format!(
            "kubectl delete mutatingwebhookconfiguration {name}   # or start the webhook again: kubewake webhook --name {name} …"
        ),
    }
}

fn unreadable_line(codes: &WebhookCodes, resource: &str, error: &kube::Error) -> CheckLine {
    let mend = format!("kubectl auth can-i list {resource}.admissionregistration.k8s.io");
    CheckLine::warned(codes.registered, format!("failed to read {resource}: {}", error_chain(error)), mend)
}

/// Checks its registration, its certificate, and whether it responds.
async fn check_webhook(client: &Client, hook: &RegisteredWebhook) -> Vec<CheckLine> {
    let now = jiff::Timestamp::now().as_second();
    let mut lines = vec![CheckLine::passed(hook.codes.registered, &hook.object)];
    let bundle = hook.client.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
    let (roots, authority) = match certificate::parse_ca_bundle(bundle) {
        Ok(read) => read,
        Err(why) => {
            lines.push(CheckLine::failed(hook.codes.certificate, why, &hook.restart));
            return lines;
        }
    };
    let target = match resolve_address(client, &hook.client).await {
        Ok(target) => target,
        Err(why) => {
            lines.push(check_validity(hook, authority, now));
            lines.push(CheckLine::failed(hook.codes.answers, why, format!("kubectl get {} -o yaml", hook.object)));
            return lines;
        }
    };
    match certificate::attempt_handshake(&target.address, &target.name, roots).await {
        HandshakeOutcome::Answered(shown) => {
            lines.push(check_validity(hook, shown.unwrap_or(authority), now));
            lines.push(CheckLine::passed(hook.codes.answers, &target.address));
        }
        HandshakeOutcome::Untrusted(why) => {
            let detail = format!(
                "failed to verify the certificate of {} with the caBundle of the registration: {why}",
                target.address
            );
            lines.push(CheckLine::failed(hook.codes.certificate, detail, &hook.restart));
        }
        HandshakeOutcome::Unreachable(why) => {
            lines.push(check_validity(hook, authority, now));
            lines.push(check_service_endpoints(client, hook, &target, &why).await);
        }
    }
    lines
}

fn check_validity(hook: &RegisteredWebhook, life: CertificateValidity, now: i64) -> CheckLine {
    match life.find_problem(now) {
        None => CheckLine::passed(hook.codes.certificate, life.describe_remaining(now)),
        Some((true, words)) => CheckLine::failed(hook.codes.certificate, words, &hook.restart),
        Some((false, words)) => CheckLine::warned(hook.codes.certificate, words, &hook.restart),
    }
}

async fn resolve_address(client: &Client, config: &WebhookClientConfig) -> Result<WebhookAddress, String> {
    if let Some(url) = &config.url {
        let uri: Uri = url.parse().map_err(|_| format!("invalid URL {url:?} in the registration"))?;
        let host = uri.host().ok_or_else(|| format!("URL {url:?} in the registration has no host"))?;
        let name = host.trim_matches(['[', ']']).to_owned();
        return Ok(WebhookAddress {
            address: format!("{host}:{}", uri.port_u16().unwrap_or(443)),
            name,
            service: None,
        });
    }
    let service = config.service.as_ref().ok_or("the registration names neither a URL nor a Service")?;
    let namespace = service.namespace.clone();
    let name = service.name.clone();
    let found = Api::<Service>::namespaced(client.clone(), &namespace).get_opt(&name).await;
    let found = found.map_err(|error| format!("failed to get Service {namespace}/{name}: {}", error_chain(&error)))?;
    let found = found.ok_or_else(|| format!("Service {namespace}/{name} does not exist"))?;
    let address = found.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
    let address = if address.contains(':') { format!("[{address}]") } else { address };
    Ok(WebhookAddress {
        address: format!("{address}:{}", service.port.unwrap_or(443)),
        name: format!("{name}.{namespace}.svc"),
        service: Some((namespace, name)),
    })
}

/// Checks the endpoints of a webhook that cannot be reached from here, but perhaps from the API servers.
async fn check_service_endpoints(
    client: &Client,
    hook: &RegisteredWebhook,
    target: &WebhookAddress,
    why: &str,
) -> CheckLine {
    let Some((namespace, name)) = &target.service else {
        let detail = format!("failed to connect to {}: {why}", target.address);
        return CheckLine::failed(hook.codes.answers, detail, &hook.restart);
    };
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let slices = slices.list(&ListParams::default().labels(&format!("kubernetes.io/service-name={name}"))).await;
    let ready = slices.map(|slices| {
        let endpoints = slices.items.into_iter().flat_map(|slice| slice.endpoints);
        endpoints.filter(|it| it.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true)).count()
    });
    let mend = format!("kubectl get pods,endpointslices --namespace {namespace}\n{}", hook.restart);
    match ready {
        Ok(0) => CheckLine::failed(hook.codes.answers, format!("Service {namespace}/{name} has no ready pod"), mend),
        Ok(_) => CheckLine::passed(
            hook.codes.answers,
            format!("Service {namespace}/{name} has ready pods, but is not reachable from here ({why})"),
        ),
        Err(error) => CheckLine::warned(
            hook.codes.answers,
            format!("not reachable from here ({why}); failed to list EndpointSlices: {}", error_chain(&error)),
            mend,
        ),
    }
}

/// Whether every API server that responds here calls the webhook.
async fn check_called_by_all_servers(scene: &CheckContext<'_>, hook: &RegisteredWebhook) -> CheckLine {
    let mut line = check_called(&scene.cluster.client, hook).await;
    for _ in 1..DRY_RUN_ATTEMPTS {
        if line.outcome != CheckOutcome::Passed {
            break;
        }
        line = match scene.args.cluster.resolve_cluster().await {
            Ok(cluster) => check_called(&cluster.client, hook).await,
            Err(error) => CheckLine::failed(codes::KW404, error_chain(error.as_ref()), &hook.restart),
        };
    }
    line
}

/// Whether an API server rejects an object that only the webhook rejects, which proves that it calls the
/// webhook. Nothing is stored, since it is a dry run.
async fn check_called(client: &Client, hook: &RegisteredWebhook) -> CheckLine {
    let resource = ApiResource::erase::<TracePipeline>(&());
    let spec = json!({"output": {"otlp": {"endpoint": {"value": "https://no host"}}}});
    let object = DynamicObject::new("kubewake-check", &resource).data(json!({"spec": spec}));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mend = &hook.restart;
    match api.create(&dry, &object).await {
        Ok(_) => {
            let detail = "the API server accepted a pipeline that the webhook denies: check rules and selectors of the registration";
            CheckLine::failed(codes::KW404, detail, mend)
        }
        Err(kube::Error::Api(status)) if status.message.contains("denied the request") => {
            CheckLine::passed(codes::KW404, "")
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let detail = "not checked, because you may not create a TracePipeline";
            CheckLine::warned(codes::KW404, detail, "kubectl auth can-i create tracepipelines.telemetry.kubewake.io")
        }
        Err(error) => CheckLine::failed(codes::KW404, error_chain(&error), mend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest_applier;

    #[test]
    fn deployment_names_span_endpoint_as_its_manifest_does() {
        let manifest = include_str!("../../../../deploy/webhook/deployment.yaml");
        let deployed = manifest_applier::parse_manifest(manifest).unwrap().remove(0);
        let with_variables = |env: serde_json::Value, env_from: serde_json::Value| {
            let mut deployment = deployed.clone();
            deployment["spec"]["template"]["spec"]["containers"][0]["env"] = env;
            deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"] = env_from;
            names_span_endpoint(&serde_json::from_value(deployment).unwrap())
        };
        assert!(names_span_endpoint(&serde_json::from_value(deployed.clone()).unwrap()), "as deploy/webhook has it");
        assert!(!with_variables(json!([{"name": "POD_IP", "value": "10.0.0.1"}]), json!([])));
        assert!(!with_variables(json!([{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": " "}]), json!(null)));
        assert!(with_variables(
            json!([{"name": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "value": "http://a"}]),
            json!([])
        ));
        let from_secret = json!({"secretKeyRef": {"name": "a", "key": "b"}});
        assert!(with_variables(json!([{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "valueFrom": from_secret}]), json!([])));
        assert!(with_variables(json!([]), json!([{"secretRef": {"name": "a"}}])), "it may be in there");
    }

    #[test]
    fn only_what_is_installed_is_rolled_out_again() {
        let to = |client: serde_json::Value| restart_command("mine", &serde_json::from_value(client).unwrap());
        let service = |name: &str| json!({"service": {"namespace": "tracing", "name": name}});
        assert_eq!(
            to(service("kubewake-webhook")),
            "kubectl rollout restart deployment/kubewake-webhook --namespace tracing"
        );
        for other in [service("own"), json!({"url": "https://127.0.0.1:29444/stamp"})] {
            let mend = to(other);
            assert!(mend.starts_with("kubectl delete mutatingwebhookconfiguration mine "), "{mend}");
        }
    }
}
