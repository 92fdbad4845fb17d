//! Whether API servers can call the webhooks.

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
use kubewake_api::v1alpha1::TracePipeline;
use kubewake_operator::names;
use kubewake_trail::in_words;
use serde_json::json;

use super::{
    Scene,
    certificate::{self, Call, Life},
    code::{self, Code},
    line::{Line, Outcome, Section},
    operator::{Rollout, rollout},
};
use crate::survey::pods;

/// The codes of one webhook.
struct Codes {
    registered: Code,
    certificate: Code,
    answers: Code,
}

const OPERATOR: Codes = Codes { registered: code::KW401, certificate: code::KW402, answers: code::KW403 };
const TRAIL: Codes = Codes { registered: code::KW411, certificate: code::KW412, answers: code::KW413 };

/// How often the API server is asked to ask the operator's webhook, each time by a connection of its own: behind one address there may be several
/// API servers, and each has its own way to the Service.
const CALLS: usize = 3;
/// The argument with which the operator serves its webhook.
const SERVES_WEBHOOK: &str = "--webhook-listen";

/// The Deployment of the trail webhook, its Service, its registration, and the namespace of them.
const INSTALLED: &str = "kubewake-webhook";

/// A registration.
struct Hook {
    /// As kubectl finds it: `validatingwebhookconfiguration kubewake-operator`.
    object: String,
    codes: Codes,
    client: WebhookClientConfig,
    /// How to start whoever looks after it again.
    restart: String,
}

/// Where a webhook is.
struct Target {
    address: String,
    name: String,
    /// The Service that leads there.
    service: Option<(String, String)>,
}

pub(super) async fn look(scene: &Scene<'_>) -> Section {
    let mut lines = of_operator(scene).await;
    lines.extend(of_trail(scene).await);
    Section { name: "Webhooks", lines }
}

async fn of_operator(scene: &Scene<'_>) -> Vec<Line> {
    let client = &scene.cluster.client;
    let namespace = &scene.args.cluster.namespace;
    let found = Api::<ValidatingWebhookConfiguration>::all(client.clone()).get_opt(names::MANAGER).await;
    let registered = match found {
        Ok(Some(found)) => found.webhooks.unwrap_or_default().into_iter().next(),
        Ok(None) => None,
        Err(error) => return vec![unseen(&OPERATOR, "validatingwebhookconfigurations", &error)],
    };
    let Some(registered) = registered else {
        let detail = "nobody says what is wrong with a pipeline when it is written, and whoever writes one can name every Secret";
        let mend = format!(
            "kubectl logs --namespace {namespace} deployment/{} --tail 20   # it registers itself, with --webhook-listen",
            names::MANAGER
        );
        return vec![match serves_webhook(client, namespace).await {
            true => Line::failed(code::KW401, "the operator serves a webhook that is not registered yet", mend),
            false => Line::warned(code::KW401, detail, mend),
        }];
    };
    let hook = Hook {
        object: format!("validatingwebhookconfiguration {}", names::MANAGER),
        codes: OPERATOR,
        client: registered.client_config,
        restart: format!("kubectl rollout restart deployment/{} --namespace {namespace}", names::MANAGER),
    };
    let mut lines = examine(client, &hook).await;
    lines.push(is_asked_by_all(scene, &hook).await);
    lines
}

/// Whether the operator is installed with a webhook, so that there has to be a registration.
async fn serves_webhook(client: &Client, namespace: &str) -> bool {
    let found = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(names::MANAGER).await;
    let spec = found.ok().flatten().and_then(|deployment| deployment.spec?.template.spec);
    let mut args = spec.into_iter().flat_map(|spec| spec.containers).flat_map(|it| it.args.unwrap_or_default());
    args.any(|arg| arg.starts_with(SERVES_WEBHOOK))
}

/// There may be several, or none.
async fn of_trail(scene: &Scene<'_>) -> Vec<Line> {
    let client = &scene.cluster.client;
    let all = Api::<MutatingWebhookConfiguration>::all(client.clone()).list(&ListParams::default()).await;
    let all = match all {
        Ok(all) => all,
        Err(error) => return vec![unseen(&TRAIL, "mutatingwebhookconfigurations", &error)],
    };
    let mut lines: Vec<Line> = installed_trail(client, all.iter().any(|it| it.name_any() == INSTALLED)).await;
    for found in all {
        let name = found.name_any();
        let ours = format!("stamp.{name}.kubewake.io");
        let webhooks = found.webhooks.unwrap_or_default();
        let Some(registered) = webhooks.into_iter().find(|webhook| webhook.name == ours) else { continue };
        let restart = again(&name, &registered.client_config);
        let object = format!("mutatingwebhookconfiguration {name}");
        let hook = Hook { object, codes: TRAIL, client: registered.client_config, restart };
        lines.extend(examine(client, &hook).await);
    }
    lines
}

/// What is not well with the Deployment of the trail webhook, if it is installed.
async fn installed_trail(client: &Client, is_registered: bool) -> Vec<Line> {
    let found = Api::<Deployment>::namespaced(client.clone(), INSTALLED).get_opt(INSTALLED).await;
    let Ok(Some(deployment)) = found else { return Vec::new() };
    let mend = format!(
        "kubectl describe pods --namespace {INSTALLED}\nkubectl logs --namespace {INSTALLED} deployment/{INSTALLED} --tail 20"
    );
    let mut lines = Vec::new();
    let Rollout { ready, wanted, is_done } = rollout(&deployment);
    if !is_done {
        let why = pods::trouble_of(client, &deployment).await.map(|why| format!(": {why}")).unwrap_or_default();
        let detail =
            format!("Deployment {INSTALLED}/{INSTALLED} is not rolled out: {ready} of {wanted} pods are ready{why}");
        lines.push(Line::warned(code::KW413, detail, &mend).settling(true));
    }
    if !is_registered {
        let detail = format!("Deployment {INSTALLED}/{INSTALLED} has not registered itself yet");
        lines.push(Line::warned(code::KW411, detail, mend).settling(true));
    }
    lines
}

/// How to start a trail webhook again. One that is not installed by our manifests was started by somebody, who may have ended it for good: its registration stays.
fn again(name: &str, client: &WebhookClientConfig) -> String {
    match client.service.as_ref().filter(|service| service.name == INSTALLED) {
        Some(service) => {
            format!("kubectl rollout restart deployment/{INSTALLED} --namespace {}", service.namespace)
        }
        None => format!(
            "kubectl delete mutatingwebhookconfiguration {name}   # if nobody needs it; else start it again: kubewake webhook --name {name} …"
        ),
    }
}

fn unseen(codes: &Codes, resource: &str, error: &kube::Error) -> Line {
    let mend = format!("kubectl auth can-i list {resource}.admissionregistration.k8s.io");
    Line::warned(codes.registered, format!("it cannot be seen: {}", in_words(error)), mend)
}

/// Its registration, the certificate, and whether it answers.
async fn examine(client: &Client, hook: &Hook) -> Vec<Line> {
    let now = jiff::Timestamp::now().as_second();
    let mut lines = vec![Line::passed(hook.codes.registered, &hook.object)];
    let bundle = hook.client.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
    let (roots, authority) = match certificate::authorities(bundle) {
        Ok(read) => read,
        Err(why) => {
            lines.push(Line::failed(hook.codes.certificate, why, &hook.restart));
            return lines;
        }
    };
    let target = match target(client, &hook.client).await {
        Ok(target) => target,
        Err(why) => {
            lines.push(judge(hook, authority, now));
            lines.push(Line::failed(hook.codes.answers, why, format!("kubectl get {} -o yaml", hook.object)));
            return lines;
        }
    };
    match certificate::call(&target.address, &target.name, roots).await {
        Call::Answered(shown) => {
            lines.push(judge(hook, shown.unwrap_or(authority), now));
            lines.push(Line::passed(hook.codes.answers, &target.address));
        }
        Call::Untrusted(why) => {
            let detail = format!("what {} shows is not what the registration believes: {why}", target.address);
            lines.push(Line::failed(hook.codes.certificate, detail, &hook.restart));
        }
        Call::Unreachable(why) => {
            lines.push(judge(hook, authority, now));
            lines.push(behind(client, hook, &target, &why).await);
        }
    }
    lines
}

fn judge(hook: &Hook, life: Life, now: i64) -> Line {
    match life.trouble(now) {
        None => Line::passed(hook.codes.certificate, life.rest(now)),
        Some((true, words)) => Line::failed(hook.codes.certificate, words, &hook.restart),
        Some((false, words)) => Line::warned(hook.codes.certificate, words, &hook.restart),
    }
}

/// Where the registration leads.
async fn target(client: &Client, config: &WebhookClientConfig) -> Result<Target, String> {
    if let Some(url) = &config.url {
        let uri: Uri = url.parse().map_err(|_| format!("{url:?} is no URL"))?;
        let host = uri.host().ok_or_else(|| format!("{url:?} has no host"))?;
        let name = host.trim_matches(['[', ']']).to_owned();
        return Ok(Target { address: format!("{host}:{}", uri.port_u16().unwrap_or(443)), name, service: None });
    }
    let service = config.service.as_ref().ok_or("its registration names neither a URL nor a Service")?;
    let (namespace, name) = (service.namespace.clone(), service.name.clone());
    let found = Api::<Service>::namespaced(client.clone(), &namespace).get_opt(&name).await;
    let found =
        found.map_err(|error| format!("the Service {namespace}/{name} cannot be seen: {}", in_words(&error)))?;
    let found = found.ok_or_else(|| format!("there is no Service {namespace}/{name}"))?;
    let address = found.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
    let address = if address.contains(':') { format!("[{address}]") } else { address };
    Ok(Target {
        address: format!("{address}:{}", service.port.unwrap_or(443)),
        name: format!("{name}.{namespace}.svc"),
        service: Some((namespace, name)),
    })
}

/// It cannot be called from here. Perhaps from where API servers are.
async fn behind(client: &Client, hook: &Hook, target: &Target, why: &str) -> Line {
    let Some((namespace, name)) = &target.service else {
        let detail = format!("nobody at {}: {why}", target.address);
        return Line::failed(hook.codes.answers, detail, &hook.restart);
    };
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let slices = slices.list(&ListParams::default().labels(&format!("kubernetes.io/service-name={name}"))).await;
    let ready = slices.map(|slices| {
        let endpoints = slices.items.into_iter().flat_map(|slice| slice.endpoints);
        endpoints.filter(|it| it.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true)).count()
    });
    let mend = format!("kubectl get pods,endpointslices --namespace {namespace}\n{}", hook.restart);
    match ready {
        Ok(0) => {
            Line::failed(hook.codes.answers, format!("no pod behind the Service {namespace}/{name} is ready"), mend)
        }
        Ok(_) => Line::passed(
            hook.codes.answers,
            format!("pods behind {namespace}/{name} are ready; not called from here ({why})"),
        ),
        Err(error) => {
            Line::warned(hook.codes.answers, format!("not called from here ({why}), and {}", in_words(&error)), mend)
        }
    }
}

/// Whether every API server that answers here asks the webhook.
async fn is_asked_by_all(scene: &Scene<'_>, hook: &Hook) -> Line {
    let mut line = is_asked(&scene.cluster.client, hook).await;
    for _ in 1..CALLS {
        if line.outcome != Outcome::Passed {
            break;
        }
        line = match scene.args.cluster.cluster().await {
            Ok(cluster) => is_asked(&cluster.client, hook).await,
            Err(error) => Line::failed(code::KW404, in_words(error.as_ref()), &hook.restart),
        };
    }
    line
}

/// The proof: an API server, given something that only the webhook refuses, refuses it. Nothing is stored, since it is a dry run.
async fn is_asked(client: &Client, hook: &Hook) -> Line {
    let resource = ApiResource::erase::<TracePipeline>(&());
    let spec = json!({"output": {"otlp": {"endpoint": {"value": "https://no host"}}}});
    let object = DynamicObject::new("kubewake-check", &resource).data(json!({"spec": spec}));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mend = &hook.restart;
    match api.create(&dry, &object).await {
        Ok(_) => {
            let detail =
                "the API server takes a pipeline that the webhook would refuse: its rules or selectors were changed";
            Line::failed(code::KW404, detail, mend)
        }
        Err(kube::Error::Api(status)) if status.message.contains("denied the request") => Line::passed(code::KW404, ""),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let detail = "you may make no TracePipeline, so that it was not tried";
            Line::warned(code::KW404, detail, "kubectl auth can-i create tracepipelines.telemetry.kubewake.io")
        }
        Err(error) => Line::failed(code::KW404, in_words(&error), mend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_installed_is_rolled_out_again() {
        let to = |client: serde_json::Value| again("mine", &serde_json::from_value(client).unwrap());
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
