//! Python environments with the packages that the tests need.

use std::{fs, path::PathBuf, process::Command};

use anyhow::Context;

use crate::{
    steps::{command_output, run},
    target_dir, workspace_root,
};

/// An environment: its folder in the target directory, its requirements, and the variable that names its
/// interpreter to the tests.
struct PythonEnvironment {
    folder: &'static str,
    requirements: &'static str,
    variable: &'static str,
}

/// Incompatible packages are in separate environments.
const ENVIRONMENTS: [PythonEnvironment; 2] = [
    PythonEnvironment { folder: "venv", requirements: "e2e/requirements.txt", variable: "KUBEWAKE_PYTHON" },
    PythonEnvironment {
        folder: "venv-opencensus",
        requirements: "e2e/requirements-opencensus.txt",
        variable: "KUBEWAKE_OPENCENSUS_PYTHON",
    },
];

/// Interpreters, each with its variable.
pub(crate) type PythonInterpreters = Vec<(&'static str, PathBuf)>;

/// Creates the virtual environments, again if their requirements or Python changed, and returns their
/// interpreters.
pub(crate) fn install() -> anyhow::Result<PythonInterpreters> {
    ENVIRONMENTS.iter().map(|environment| Ok((environment.variable, environment.install()?))).collect()
}

impl PythonEnvironment {
    fn install(&self) -> anyhow::Result<PathBuf> {
        let venv = target_dir().join(self.folder);
        let python = venv.join("bin/python");
        let requirements = fs::read_to_string(workspace_root().join(self.requirements)).context(self.requirements)?;
        let wanted = format!("{}\n{requirements}", command_output("python3", &["--version"])?);
        let stamp = venv.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        if venv.exists() {
            fs::remove_dir_all(&venv).with_context(|| format!("failed to remove {}", venv.display()))?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            self.requirements,
        ]))?;
        // Written last, so that an incomplete installation is not mistaken for a complete one.
        fs::write(&stamp, wanted).with_context(|| format!("failed to write {}", stamp.display()))?;
        Ok(python)
    }
}
