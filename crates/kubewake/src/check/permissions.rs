//! Checks whether the caller may install everything.

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use kubewake_trail::error_chain;

use super::{
    CheckContext, codes,
    report::{CheckLine, CheckSection},
};

/// Objects that an installation writes: verb, group, resource, whether it is namespaced.
const REQUIRED_PERMISSIONS: &[(&str, &str, &str, bool)] = &[
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", false),
    ("create", "", "namespaces", false),
    ("create", "rbac.authorization.k8s.io", "clusterroles", false),
    // Granting a role requires all of its permissions, or this one.
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
const MAX_CONCURRENT_REVIEWS: usize = 8;

pub(super) async fn check(scene: &CheckContext<'_>) -> CheckSection {
    let client = &scene.cluster.client;
    let namespace = &scene.args.cluster.namespace;
    let everything = is_permitted(client, resource_attributes("*", "*", "*", None)).await;
    let line = match everything {
        Ok(true) => CheckLine::passed(codes::KW111, "you have all permissions"),
        Ok(false) => check_each_permission(client, namespace).await,
        Err(error) => {
            let mend = "kubectl auth can-i create selfsubjectaccessreviews.authorization.k8s.io";
            CheckLine::warned(codes::KW111, format!("failed to review your permissions: {}", error_chain(&error)), mend)
        }
    };
    CheckSection { name: "Install", lines: vec![line] }
}

async fn check_each_permission(client: &Client, namespace: &str) -> CheckLine {
    let asked = REQUIRED_PERMISSIONS.iter().map(|&(verb, group, resource, is_namespaced)| async move {
        let namespace = is_namespaced.then_some(namespace);
        let may = is_permitted(client, resource_attributes(verb, group, resource, namespace)).await;
        (!may.unwrap_or(false)).then(|| format_permission(verb, group, resource))
    });
    let missing: Vec<Option<String>> =
        stream::iter(asked.collect::<Vec<_>>()).buffered(MAX_CONCURRENT_REVIEWS).collect().await;
    let missing: Vec<String> = missing.into_iter().flatten().collect();
    if missing.is_empty() {
        return CheckLine::passed(codes::KW111, "");
    }
    let mend = format!(
        "kubectl create clusterrolebinding kubewake-install --clusterrole cluster-admin --user YOU   # needs an administrator of the cluster\n\
         kubectl auth can-i {}",
        missing.first().map(String::as_str).unwrap_or_default()
    );
    CheckLine::failed(codes::KW111, format!("missing permissions: {}", missing.join(", ")), mend)
}

/// In the notation of `kubectl auth can-i`.
fn format_permission(verb: &str, group: &str, resource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{verb} {resource}{dot}{group}")
}

fn resource_attributes(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> ResourceAttributes {
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

async fn is_permitted(client: &Client, what: ResourceAttributes) -> Result<bool, kube::Error> {
    let spec =
        SelfSubjectAccessReviewSpec { resource_attributes: Some(what), ..SelfSubjectAccessReviewSpec::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// The permissions in `needed` that another user lacks.
pub(super) async fn find_missing_permissions(
    client: &Client,
    user: &str,
    needed: &[(&str, &str, &str, Option<&str>)],
) -> Result<Vec<String>, kube::Error> {
    let mut missing = Vec::new();
    for &(verb, group, resource, namespace) in needed {
        let spec = SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            groups: Some(vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()]),
            resource_attributes: Some(resource_attributes(verb, group, resource, namespace)),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            missing.push(format_permission(verb, group, resource));
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
                assert!(REQUIRED_PERMISSIONS.iter().any(|(_, _, resource, _)| *resource == plural), "{kind}");
            }
        }
    }
}
