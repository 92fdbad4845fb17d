//! Whether whoever asks may install everything.

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use kubewake_trail::in_words;

use super::{
    Scene, code,
    line::{Line, Section},
};

/// What an install writes: verb, group, resource, whether it is in a namespace.
const NEEDED: &[(&str, &str, &str, bool)] = &[
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", false),
    ("create", "", "namespaces", false),
    ("create", "rbac.authorization.k8s.io", "clusterroles", false),
    // A role can be given only by who has all of it, or this.
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", false),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", false),
    ("create", "rbac.authorization.k8s.io", "roles", true),
    ("create", "rbac.authorization.k8s.io", "rolebindings", true),
    ("create", "", "serviceaccounts", true),
    ("create", "", "services", true),
    ("create", "apps", "deployments", true),
    ("create", "policy", "poddisruptionbudgets", true),
    ("create", "networking.k8s.io", "networkpolicies", true),
];
/// How many are asked about at once.
const AT_ONCE: usize = 8;

pub(super) async fn look(scene: &Scene<'_>) -> Section {
    let client = &scene.cluster.client;
    let namespace = &scene.args.cluster.namespace;
    let everything = may(client, attributes("*", "*", "*", None)).await;
    let line = match everything {
        Ok(true) => Line::passed(code::KW111, "you may do everything"),
        Ok(false) => one_by_one(client, namespace).await,
        Err(error) => {
            let mend = "kubectl auth can-i create selfsubjectaccessreviews.authorization.k8s.io";
            Line::warned(code::KW111, format!("it cannot be asked: {}", in_words(&error)), mend)
        }
    };
    Section { name: "Install", lines: vec![line] }
}

async fn one_by_one(client: &Client, namespace: &str) -> Line {
    let asked = NEEDED.iter().map(|&(verb, group, resource, is_namespaced)| async move {
        let namespace = is_namespaced.then_some(namespace);
        let may = may(client, attributes(verb, group, resource, namespace)).await;
        (!may.unwrap_or(false)).then(|| named(verb, group, resource))
    });
    let missing: Vec<Option<String>> = stream::iter(asked.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    let missing: Vec<String> = missing.into_iter().flatten().collect();
    if missing.is_empty() {
        return Line::passed(code::KW111, "");
    }
    let mend = format!(
        "kubectl create clusterrolebinding kubewake-install --clusterrole cluster-admin --user YOU   # or ask whoever may\n\
         kubectl auth can-i {}",
        missing.first().map(String::as_str).unwrap_or_default()
    );
    Line::failed(code::KW111, format!("you may not {}", missing.join(", ")), mend)
}

/// As `kubectl auth can-i` takes it.
fn named(verb: &str, group: &str, resource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{verb} {resource}{dot}{group}")
}

fn attributes(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> ResourceAttributes {
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

/// Whether whoever asks may.
async fn may(client: &Client, what: ResourceAttributes) -> Result<bool, kube::Error> {
    let spec =
        SelfSubjectAccessReviewSpec { resource_attributes: Some(what), ..SelfSubjectAccessReviewSpec::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// What somebody else may not of these, by verb, group, resource and namespace.
pub(super) async fn missing(
    client: &Client,
    user: &str,
    needed: &[(&str, &str, &str, Option<&str>)],
) -> Result<Vec<String>, kube::Error> {
    let mut missing = Vec::new();
    for &(verb, group, resource, namespace) in needed {
        let spec = SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            groups: Some(vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()]),
            resource_attributes: Some(attributes(verb, group, resource, namespace)),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            missing.push(named(verb, group, resource));
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_manifests_hold_is_asked_about() {
        let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        for file in ["base", "crds"].iter().flat_map(|folder| std::fs::read_dir(deploy.join(folder)).unwrap()) {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for kind in
                text.lines().filter_map(|line| line.strip_prefix("kind: ")).filter(|kind| *kind != "Kustomization")
            {
                let plural = kind.to_lowercase();
                let plural = plural.strip_suffix('y').map_or(format!("{plural}s"), |stem| format!("{stem}ies"));
                assert!(NEEDED.iter().any(|(_, _, resource, _)| *resource == plural), "{kind}");
            }
        }
    }
}
