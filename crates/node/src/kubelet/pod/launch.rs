//! What stands before a run: the program of the image, and the configuration of the container.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Container;

use super::{Orders, Worker};
use crate::{images::Program, kubelet::env::Launch};

impl Worker {
    /// All that the next run needs, as soon as it can be had. None if the pod stops first.
    pub(super) async fn launch(&self, name: &str, orders: &mut Orders) -> Option<(Container, Launch)> {
        loop {
            let container = self.spec_of(name)?;
            let program = self.program(&container, orders).await?;
            let launch = resolve(&container, &program, self.dir.clone());
            return Some((container, launch));
        }
    }

    async fn program(&self, container: &Container, orders: &mut Orders) -> Option<Program> {
        let name = &container.name;
        let image = container.image.as_deref().unwrap_or_default();
        let program = match self.node.options.images.find(image) {
            Ok(program) => program.clone(),
            Err(error) => {
                self.refuse(container, image, &error.to_string());
                // The table does not change: only another image helps.
                tokio::select! {
                    _ = self.replaced(container) => return None,
                    () = orders.stop() => return None,
                }
            }
        };
        let note = format!("Container image {image:?} already present on machine and can be accessed by the pod");
        self.normal(name, "Pulled", note);
        self.board.change_container(name, |status| {
            status.image = image.to_owned();
            status.image_id = format!("kubewake://{}", program.path.display());
        });
        Some(program)
    }

    fn refuse(&self, container: &Container, image: &str, why: &str) {
        let name = &container.name;
        self.warning(name, "Failed", format!("Failed to pull image {image:?}: {why}"));
        self.warning(name, "Failed", "Error: ErrImagePull");
        self.board.wait(name, "ErrImagePull", Some(why.to_owned()));
    }
}

/// For now.
fn resolve(container: &Container, program: &Program, dir: PathBuf) -> Launch {
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
