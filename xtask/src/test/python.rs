//! Pythons of our own with the packages that the tests use.

use std::{fs, path::PathBuf, process::Command};

use anyhow::Context;

use crate::{
    root,
    steps::{output, run},
    target,
};

/// An environment: its folder in the target directory, what is in it, and the variable that names its interpreter to the tests.
struct Environment {
    folder: &'static str,
    requirements: &'static str,
    variable: &'static str,
}

/// Packages that cannot live together have environments of their own.
const ENVIRONMENTS: [Environment; 2] = [
    Environment { folder: "venv", requirements: "e2e/requirements.txt", variable: "KUBEWAKE_PYTHON" },
    Environment {
        folder: "venv-opencensus",
        requirements: "e2e/requirements-opencensus.txt",
        variable: "KUBEWAKE_OPENCENSUS_PYTHON",
    },
];

/// Interpreters, by the variable that names them.
pub(crate) type Interpreters = Vec<(&'static str, PathBuf)>;

/// Makes the virtual environments, anew when their requirements or Python changed, and gives their interpreters.
pub(crate) fn install() -> anyhow::Result<Interpreters> {
    ENVIRONMENTS.iter().map(|environment| Ok((environment.variable, environment.install()?))).collect()
}

impl Environment {
    fn install(&self) -> anyhow::Result<PathBuf> {
        let venv = target().join(self.folder);
        let python = venv.join("bin/python");
        let requirements = fs::read_to_string(root().join(self.requirements)).context(self.requirements)?;
        let wanted = format!("{}\n{requirements}", output("python3", &["--version"])?);
        let stamp = venv.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        if venv.exists() {
            fs::remove_dir_all(&venv).with_context(|| format!("cannot remove {}", venv.display()))?;
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
        // Written last, so that an installation that broke off is not taken for a whole one.
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(python)
    }
}
