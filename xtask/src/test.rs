//! `cargo xtask test`: from a fresh machine to every test.

mod packages;
mod page;
mod python;

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::{
    features, image, recipe,
    steps::{TimedSteps, cargo, run as run_command},
    target_dir, tidy,
};

/// Stories that make sense on any cluster: what clients do. The others start servers of their own.
const CLUSTER_INDEPENDENT_STORIES: [&str; 2] = ["stories::kubectl::", "stories::python_kubernetes::"];
/// Begins the name of every story.
const STORY_PREFIX: &str = "stories::";
const STORIES_PER_CORE: usize = 2;
/// Is in the name of every story that takes minutes.
const LONG_TEST_MARKER: &str = "::long::";
/// Stories for which the cluster must reach this machine, at the address that this variable has.
const HOST_VARIABLE: &str = "KUBEWAKE_E2E_HOST";
const CALLBACK_STORIES: [&str; 20] = [
    "stories::webhook::rules::",
    "stories::head_operator::whole::one_apply",
    "stories::head_operator::again::",
    "stories::head_operator::distrust::",
    "stories::head_operator::links::",
    "stories::head_operator::rapid::",
    "stories::head_operator::refused::",
    "stories::head_operator::removed::",
    "stories::head_operator::restart::",
    "stories::operator::first::",
    "stories::operator::gone::",
    "stories::operator::missing::",
    "stories::operator::slots::",
    "stories::operator::delivery::a_wrong_password",
    "stories::operator::change::",
    "stories::operator::tail::",
    "stories::operator::signals::all_three_signals",
    "stories::operator::restart::what_happens",
    "stories::operator::rotation::",
    "stories::operator::upgrade::collectors_that_cannot_start",
];

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Run only the stories that work on any cluster, on the cluster of this kubeconfig, or of
    /// $KUBECONFIG
    #[arg(long, value_name = "KUBECONFIG", num_args = 0..=1)]
    cluster: Option<Option<PathBuf>>,
    /// Run only the tests that take too long for CI
    #[arg(long, conflicts_with = "cluster")]
    long: bool,
}

/// Installs what is needed, builds, tests.
pub(crate) fn run(args: &TestArgs) -> anyhow::Result<()> {
    if args.long {
        return run_long(&mut TimedSteps::default());
    }
    let Some(cluster) = &args.cluster else { return run_steps(&mut TimedSteps::default()) };
    let kubeconfig = cluster.clone().or_else(|| std::env::var_os("KUBECONFIG").map(PathBuf::from));
    let kubeconfig = kubeconfig.context("no kubeconfig: write --cluster FILE, or set KUBECONFIG")?;
    // Tests run in folders of their own.
    let kubeconfig = kubeconfig.canonicalize().with_context(|| format!("failed to read {}", kubeconfig.display()))?;
    test_on_cluster(&mut TimedSteps::default(), &kubeconfig)
}

/// What takes minutes: tests that are ignored otherwise, in modules named `long`.
fn run_long(steps: &mut TimedSteps) -> anyhow::Result<()> {
    steps.step("Debian packages", packages::install)?;
    let pythons = steps.step("Python packages", python::install)?;
    // The same build as in `cargo xtask test`: a part of the workspace has other features, and would compile
    // everything again.
    steps.step("build", || run_command(cargo().args(["build", "--workspace", "--all-targets"])))?;
    features::check_each(steps)?;
    recipe::run(steps)?;
    steps.step("long stories", || {
        let mut test = cargo();
        test.args(["test", "--workspace", "--test", "stories", "--", "--ignored", LONG_TEST_MARKER]);
        test.envs(pythons.clone()).env("KUBEWAKE_BIN", target_dir().join("debug/kubewake"));
        run_command(&mut test)
    })
}

fn test_on_cluster(steps: &mut TimedSteps, kubeconfig: &Path) -> anyhow::Result<()> {
    steps.step("Debian packages", packages::install)?;
    let pythons = steps.step("Python packages", python::install)?;
    let mut stories = CLUSTER_INDEPENDENT_STORIES.to_vec();
    match std::env::var_os(HOST_VARIABLE) {
        Some(_) => stories.extend(CALLBACK_STORIES),
        None => println!(
            "SKIPPED: {}: {HOST_VARIABLE} is not set to an address of this machine that the cluster can reach",
            CALLBACK_STORIES.join(", ")
        ),
    }
    println!("SKIPPED: every story but {}: the other stories start their own servers", stories.join(", "));
    let programs = ["build", "--package", "kubewake", "--package", "kubewake-example-head-operator"];
    steps.step("build", || run_command(cargo().args(programs)))?;
    steps.step("stories", || {
        let mut test = cargo();
        test.args(["test", "--package", "kubewake-e2e", "--test", "stories", "--"]).args(&stories);
        test.env("KUBEWAKE_E2E_KUBECONFIG", kubeconfig).envs(pythons.clone());
        test.env("KUBEWAKE_BIN", target_dir().join("debug/kubewake"));
        run_command(&mut test)
    })
}

/// The same, as steps among others.
pub(crate) fn run_steps(steps: &mut TimedSteps) -> anyhow::Result<()> {
    steps.step("tidy", tidy::run)?;
    steps.step("Debian packages", packages::install)?;
    steps.step("the page's modules", page::test)?;
    let pythons = steps.step("Python packages", python::install)?;
    // All targets at once, so that the binary has the same features as the tests, and nothing is built twice.
    steps.step("build", || run_command(cargo().args(["build", "--workspace", "--all-targets"])))?;
    steps.step("reduced builds", features::check_images)?;
    let images = steps.step("images", image::build_for_tests)?;
    // Runs all tests, even after a failure.
    let run_tests = |args: &[&str]| {
        let mut test = cargo();
        test.env("KUBEWAKE_IMAGE", &images.collector).env("KUBEWAKE_IMAGE_ARCHIVES", &images.archives);
        test.env("KUBEWAKE_BIN", target_dir().join("debug/kubewake")).envs(pythons.clone());
        run_command(test.args(["test", "--workspace", "--no-fail-fast"]).args(args))
    };
    let tests = steps.step("tests", || run_tests(&["--", "--skip", STORY_PREFIX]));
    let threads = story_threads().to_string();
    let stories = steps.step("stories", || run_tests(&["--test", "stories", "--", "--test-threads", &threads]));
    tests.and(stories)
}

/// The number of stories at once. A story waits for its programs for more than half of its time: 90 stories took
/// 250 s of CPU time in 570 s, two at once.
fn story_threads() -> usize {
    STORIES_PER_CORE * std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace_root;

    /// The names of the tests in a file.
    fn tests(text: &str) -> Vec<String> {
        let mut is_test = false;
        let mut names = Vec::new();
        for line in text.lines().map(str::trim) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            if let Some((_, name)) = line.split_once("fn ").filter(|_| is_test) {
                names.push(name.to_owned());
                is_test = false;
            }
        }
        names
    }

    /// The tests of a module and of those in it.
    fn tests_below(module: &Path) -> Vec<String> {
        let mut found =
            fs::read_to_string(module.with_extension("rs")).map_or_else(|_| Vec::new(), |text| tests(&text));
        for entry in fs::read_dir(module).into_iter().flatten() {
            found.extend(tests_below(&entry.unwrap().path().with_extension("")));
        }
        found
    }

    /// libtest is content with one that names nothing.
    #[test]
    fn every_filter_names_stories() {
        for filter in CLUSTER_INDEPENDENT_STORIES.iter().chain(&CALLBACK_STORIES) {
            let (module, test) = filter.rsplit_once("::").unwrap();
            let names = tests_below(&workspace_root().join("e2e/tests").join(module.replace("::", "/")));
            assert!(names.iter().any(|name| name.starts_with(test)), "{filter} matches no story");
        }
    }

    #[test]
    fn what_is_no_test_is_no_story() {
        let text = "#[tokio::test]\nasync fn told() {}\n\nfn helper() {}\n\n    #[test]\n    fn inner() {}\n";
        assert_eq!(tests(text), ["told() {}", "inner() {}"]);
    }
}
