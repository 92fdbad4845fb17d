//! Which package of the workspace may depend on which.
//!
//! *Guaranteed*: a package depends only on the packages that its line allows, and each package has a line. Tests
//! (`dev-dependencies`) may depend on every package. *Not done*: dependencies of other packages, which deny.toml
//! restricts.

use std::collections::BTreeMap;

use super::dependencies::CargoPackage;

/// The names of our packages begin with this, or are this.
const PREFIX: &str = "kubewake";

struct CrateRule {
    package: &'static str,
    may_use: &'static [&'static str],
    /// Why it may use no other package. It is part of the message.
    reason: &'static str,
}

/// The packages from the bottom to the top, without the prefix `kubewake-`.
const CRATE_RULES: &[CrateRule] = &[
    CrateRule { package: "allocation-meter", may_use: &[], reason: "it is a tool for tests of every crate" },
    CrateRule { package: "link-order", may_use: &[], reason: "it is a tool for build scripts" },
    CrateRule { package: "release", may_use: &[], reason: "it holds names alone" },
    CrateRule { package: "runtime", may_use: &[], reason: "every server and client uses it" },
    CrateRule { package: "otlp", may_use: &[], reason: "it knows the bytes of OTLP and nothing else" },
    CrateRule {
        package: "status",
        may_use: &[],
        reason: "collectors write it, and everybody who reads it stays small",
    },
    CrateRule {
        package: "status-client",
        may_use: &["runtime", "status"],
        reason: "operator, viewer and command line fetch a status the same way",
    },
    CrateRule { package: "config", may_use: &["otlp"], reason: "it is pure and shared by operator and collector" },
    CrateRule {
        package: "log-files",
        may_use: &[],
        reason: "it knows files and bytes, and neither lines nor pipelines",
    },
    CrateRule { package: "log-lines", may_use: &["otlp"], reason: "it is pure: bytes of lines in, OTLP out" },
    CrateRule {
        package: "log-operators",
        may_use: &["config", "log-lines", "otlp"],
        reason: "it is pure: records in, records out",
    },
    CrateRule {
        package: "api",
        may_use: &["config", "otlp", "status"],
        reason: "it is pure: resources in, documents out",
    },
    CrateRule {
        package: "collector",
        may_use: &["config", "log-files", "log-lines", "log-operators", "otlp", "runtime", "status"],
        reason: "the data plane runs without Kubernetes, and its image has to stay small",
    },
    CrateRule { package: "trail", may_use: &[], reason: "it is a library for other programs" },
    CrateRule {
        package: "webhook",
        may_use: &["runtime", "trail"],
        reason: "it is a toolkit for any admission webhook, and the webhook that stamps the context of trail",
    },
    CrateRule {
        package: "operator",
        may_use: &["api", "config", "release", "runtime", "status", "status-client", "trail", "webhook"],
        reason: "the operator knows collectors by their documents and their /status alone",
    },
    CrateRule {
        package: "viewer",
        may_use: &["collector", "config", "otlp", "runtime", "status", "status-client"],
        reason: "a trace backend is a receiver of the collector with a store behind it",
    },
    CrateRule {
        package: "apiserver",
        may_use: &["runtime"],
        reason: "the embedded Kubernetes knows nothing of the product (kubernetes/README.md)",
    },
    CrateRule {
        package: "node",
        may_use: &["apiserver", "runtime"],
        reason: "the embedded Kubernetes knows nothing of the product (kubernetes/README.md)",
    },
    CrateRule {
        package: "example-head-operator",
        may_use: &["trail"],
        reason: "an example has only what its reader has, too",
    },
    CrateRule {
        package: "example-scheduler",
        may_use: &["release", "trail"],
        reason: "an example has only what its reader has, too",
    },
    CrateRule {
        package: "kubewake",
        may_use: &[
            "api",
            "apiserver",
            "collector",
            "config",
            "example-head-operator",
            "example-scheduler",
            "link-order",
            "node",
            "operator",
            "otlp",
            "release",
            "runtime",
            "status",
            "status-client",
            "trail",
            "viewer",
            "webhook",
        ],
        reason: "only the command line puts the parts together, also with the examples for `up`",
    },
    CrateRule { package: "apiclient", may_use: &[], reason: "a bench measures from outside" },
    CrateRule { package: "relay", may_use: &["link-order"], reason: "a baseline contains nothing of what it measures" },
    CrateRule {
        package: "e2e",
        may_use: &["config", "otlp", "release"],
        reason: "stories use programs and not their libraries",
    },
    CrateRule {
        package: "fuzz",
        may_use: &[
            "allocation-meter",
            "api",
            "apiserver",
            "collector",
            "config",
            "log-files",
            "log-lines",
            "log-operators",
            "node",
            "operator",
            "otlp",
            "runtime",
            "status",
            "trail",
            "viewer",
            "webhook",
        ],
        reason: "fuzz targets call the parsers of libraries",
    },
    CrateRule { package: "xtask", may_use: &["release"], reason: "tasks have to compile in seconds" },
];

/// All violations by the packages of the workspace.
pub(super) fn check(packages: &[CargoPackage]) -> Vec<String> {
    let rules: BTreeMap<&str, &CrateRule> = CRATE_RULES.iter().map(|rule| (rule.package, rule)).collect();
    let ours = packages.iter().filter(|package| package.source.is_none());
    ours.flat_map(|package| match rules.get(short_name(&package.name)) {
        Some(rule) => rule.violations(package),
        None => vec![format!("{} has no line in xtask/src/tidy/crate_rules.rs", package.name)],
    })
    .collect()
}

impl CrateRule {
    fn violations(&self, package: &CargoPackage) -> Vec<String> {
        let used =
            package.dependencies.iter().filter(|used| used.kind.as_deref() != Some("dev") && used.path.is_some());
        used.map(|used| short_name(&used.name))
            .filter(|used| !self.may_use.contains(used))
            .map(|used| format!("{} must not depend on {used}: {}", package.name, self.reason))
            .collect()
    }
}

fn short_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::dependencies::CargoDependency;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> CargoPackage {
        let dependency = |(name, kind): &(&str, Option<&str>)| CargoDependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: name.starts_with(PREFIX).then(|| "/somewhere".to_owned()),
        };
        let dependencies = dependencies.iter().map(dependency).collect();
        CargoPackage { name: name.to_owned(), license: None, source: None, dependencies }
    }

    #[test]
    fn dependency_against_the_direction_is_found() {
        let upwards = package("kubewake-otlp", &[("bytes", None), ("kubewake-config", None)]);
        assert_eq!(
            check(&[upwards]),
            ["kubewake-otlp must not depend on config: it knows the bytes of OTLP and nothing else"]
        );
        let built = package("kubewake-trail", &[("kubewake-link-order", Some("build"))]);
        assert_eq!(check(&[built]).len(), 1);
        let allowed = package("kubewake-config", &[("kubewake-otlp", None), ("kubewake-apiserver", Some("dev"))]);
        assert_eq!(check(&[allowed]), Vec::<String>::new());
    }

    #[test]
    fn package_without_a_rule_is_found() {
        assert_eq!(check(&[package("kubewake-new", &[])]).len(), 1);
    }

    #[test]
    fn rules_name_only_packages_with_rules_of_their_own() {
        let names: Vec<&str> = CRATE_RULES.iter().map(|rule| rule.package).collect();
        let unknown = CRATE_RULES.iter().flat_map(|rule| rule.may_use).filter(|used| !names.contains(used));
        assert_eq!(unknown.count(), 0);
    }
}
