//! What a container runs.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Container;

use crate::images::Program;

/// A program with all it needs to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// A path, or a name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub dir: PathBuf,
}

/// For now.
pub fn resolve(container: &Container, program: &Program, dir: PathBuf) -> Launch {
    let mut command = container.command.clone().unwrap_or_default().into_iter();
    let (program, mut args) = match command.next() {
        Some(first) => (first.into(), command.collect()),
        None => (program.path.clone(), program.args.clone()),
    };
    args.extend(container.args.clone().unwrap_or_default());
    let values = container.env.iter().flatten();
    let mut env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())];
    env.extend(values.map(|one| (one.name.clone(), one.value.clone().unwrap_or_default())));
    Launch { program, args, env, dir }
}
