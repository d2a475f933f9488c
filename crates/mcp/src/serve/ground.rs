//! Where commands run.

use std::{path::PathBuf, sync::Arc};

use outpost_client::{Error, Pending, Place, Surroundings};

/// Knows the place where commands run, and finds it again if it was lost.
pub trait Ground: Send + Sync {
    /// The place. As long as it is the same, the same is given.
    fn place(&self) -> Pending<'_, Arc<dyn Place>>;
}

/// A place that is always the same.
impl Ground for Arc<dyn Place> {
    fn place(&self) -> Pending<'_, Arc<dyn Place>> {
        let place = Arc::clone(self);
        Box::pin(async move { Ok(place) })
    }
}

/// A place, with what has to be known of it to use it.
pub(super) struct Footing {
    pub(super) place: Arc<dyn Place>,
    /// What understands a command line there.
    pub(super) shell: String,
    pub(super) cwd: PathBuf,
    home: Option<PathBuf>,
    pub(super) os: String,
}

impl Footing {
    pub(super) async fn on(place: Arc<dyn Place>) -> Result<Self, Error> {
        let Surroundings {
            shell,
            cwd,
            user_home_dir,
            platform_os,
            ..
        } = place.environment().await?;
        Ok(Footing {
            place,
            shell: shell.path,
            // A server that doesn't say where it is has a root all the same.
            cwd: cwd.map_or_else(|| PathBuf::from("/"), |cwd| cwd.into_path()),
            home: user_home_dir.map(|home| home.into_path()),
            os: platform_os.unwrap_or_else(|| "an unknown system".to_owned()),
        })
    }

    /// The directory that relative paths begin at.
    pub(super) fn base(&self, chosen: Option<&str>) -> PathBuf {
        match chosen {
            Some(chosen) => self.cwd.join(self.at_home(chosen)),
            None => self.cwd.clone(),
        }
    }

    /// `~` is what people write, and no shell has seen it.
    pub(super) fn at_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(path),
        }
    }
}
