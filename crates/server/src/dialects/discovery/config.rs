//! `environmentConfig/read`: the layers of configuration on the host.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_files::FilesError;
use outpost_protocol::{
    ConfigLayers, EnvironmentConfigParams, EnvironmentConfigResult, ExecutorConfigLayer,
    FileErrorKind, PathUri, RpcError, Symlinks,
};
use toml::{Table, Value};

use super::{
    codex_home,
    reader::Reader,
    search::MAX_FILE_BYTES,
    send,
    toml_selection::{parse, select},
};
use crate::{
    connection::Reply,
    dialects::fs::{FileAccess, FileService, ResultMemory},
};

const SYSTEM_DIRECTORY: &str = "/etc/codex";
const CONFIG: &str = "config.toml";

/// Reads the selected keys of all configuration files that apply to a directory.
pub(crate) async fn read_config(
    files: Arc<FileService>,
    params: EnvironmentConfigParams,
    reply: Reply,
) {
    let read = try_read_config(&files, params).await;
    if let Some(((result, memory), reply)) = reply.accept(read) {
        let layers = result.config.layers.iter();
        let layers = layers.chain(&result.requirements.layers);
        let bytes = layers.map(|layer| layer.toml.len()).sum();
        send(&files, reply, result, (bytes, memory)).await;
    }
}

async fn try_read_config(
    files: &FileService,
    params: EnvironmentConfigParams,
) -> Result<(EnvironmentConfigResult, ResultMemory), RpcError> {
    let (config_paths, requirements_paths) = (params.config_paths, params.requirements_paths);
    if config_paths.is_empty() && requirements_paths.is_empty() {
        let message = "at least one config or requirements path is required";
        return Err(RpcError::invalid_params(message));
    }
    if config_paths
        .iter()
        .chain(&requirements_paths)
        .any(Vec::is_empty)
    {
        let message = "TOML paths must contain at least one key segment";
        return Err(RpcError::invalid_params(message));
    }
    let host = &files.connection().server.host;
    let codex_home = codex_home(host);
    let user_home_dir = host.info.user_home_dir.clone();
    let directories = Directories {
        system: PathBuf::from(SYSTEM_DIRECTORY),
        codex_home: codex_home.clone(),
        cwd: params.cwd.into_path(),
    };
    let share = files.connection().memory.clone();
    let read = files.execute(FileAccess::of_host(None), move |executor| {
        let reader = Reader::new(&executor, share);
        let config = directories.config(&reader, &config_paths);
        let requirements = directories.requirements(&reader, &requirements_paths);
        let memory = reader.finish()?;
        Ok((
            config.and_then(|config| Ok((config, requirements?))),
            memory,
        ))
    });
    let ((read, memory), _) = read.await?;
    let (config, requirements) = read.map_err(|invalid| {
        RpcError::internal(format!("failed to load executor-local config: {invalid}"))
    })?;
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let result = EnvironmentConfigResult {
        user_home_dir,
        codex_home_dir: PathUri::from_path(&codex_home),
        hostname: hostname.trim().to_owned(),
        config,
        requirements,
    };
    Ok((result, memory))
}

/// A file that can't be read or parsed: its path and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{}:{reason}", path.display())]
struct InvalidConfig {
    path: PathBuf,
    reason: String,
}

/// The directories that files are searched in.
struct Directories {
    system: PathBuf,
    codex_home: PathBuf,
    cwd: PathBuf,
}

impl Directories {
    fn config(
        &self,
        reader: &Reader<'_>,
        paths: &[Vec<String>],
    ) -> Result<ConfigLayers, InvalidConfig> {
        let mut result = ConfigLayers::default();
        if paths.is_empty() {
            return Ok(result);
        }
        let follow = Symlinks::Follow;
        let mut push = |name: &str, path: &Path, table: Option<&Table>| {
            let layer = layer(format!("{name} ({})", path.display()), path, table?, paths)?;
            result.layers.push(layer);
            Some(())
        };
        let system = self.system.join(CONFIG);
        let found = push("system", &system, read(reader, &system, follow)?.as_ref());
        let insertion = usize::from(found.is_some());
        let user = self.codex_home.join(CONFIG);
        let user_config = read(reader, &user, follow)?;
        push("user", &user, user_config.as_ref());
        for project in self.projects(reader, user_config.as_ref()) {
            let path = project.join(".codex").join(CONFIG);
            if path != user {
                // A project is not the user's own work, so its links are not followed.
                let table = read(reader, &path, Symlinks::Reject)?;
                push("project", &path, table.as_ref());
            }
        }
        let managed = self.system.join("managed_config.toml");
        let table = read(reader, &managed, follow)?;
        push("legacy managed_config.toml", &managed, table.as_ref());
        result.cloud_insertion_index = insertion;
        Ok(result)
    }

    fn requirements(
        &self,
        reader: &Reader<'_>,
        paths: &[Vec<String>],
    ) -> Result<ConfigLayers, InvalidConfig> {
        let mut result = ConfigLayers::default();
        if paths.is_empty() {
            return Ok(result);
        }
        let path = self.system.join("requirements.toml");
        let table = read(reader, &path, Symlinks::Follow)?;
        let source = path.display().to_string();
        let layer = table.and_then(|table| layer(source, &path, &table, paths));
        result.layers.extend(layer);
        result.cloud_insertion_index = result.layers.len();
        Ok(result)
    }

    /// The directories of the project from its root to the working directory, if the user trusts it.
    fn projects(&self, reader: &Reader<'_>, user: Option<&Table>) -> Vec<PathBuf> {
        let directories: Vec<&Path> = self.cwd.ancestors().take(64).collect();
        let is_root = |directory: &&Path| reader.exists(&directory.join(".git"));
        let root = directories.iter().position(is_root).unwrap_or(0);
        let trusts = |directory: &Path| {
            let projects = user.and_then(|user| user.get("projects")?.as_table());
            let entry = projects.and_then(|all| all.get(directory.to_str()?)?.as_table());
            let level = entry.and_then(|entry| entry.get("trust_level"));
            level.and_then(Value::as_str) == Some("trusted")
        };
        if !trusts(&self.cwd) && !trusts(directories[root]) {
            return Vec::new();
        }
        let inside = directories[..=root].iter().rev();
        inside.map(|directory| (*directory).to_owned()).collect()
    }
}

fn layer(
    source: String,
    path: &Path,
    table: &Table,
    paths: &[Vec<String>],
) -> Option<ExecutorConfigLayer> {
    Some(ExecutorConfigLayer {
        source,
        base_dir: PathUri::from_path(path.parent()?),
        toml: select(table, paths)?,
    })
}

/// Reads a file; `None` if it doesn't exist.
fn read(
    reader: &Reader<'_>,
    path: &Path,
    symlinks: Symlinks,
) -> Result<Option<Table>, InvalidConfig> {
    let invalid = |reason: String| InvalidConfig {
        path: path.to_owned(),
        reason,
    };
    let text = match reader.read_text(path, symlinks, MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(FilesError::SymbolicLink) => return Ok(None),
        Err(error) if error.kind() == FileErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(invalid(format!(" {error}"))),
    };
    parse(&text).map(Some).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outpost_files::{FileExecutor, Files};
    use outpost_rpc::MemoryBudget;

    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn layers_are_ordered_and_projects_need_trust() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let directories = Directories {
            system: base.join("etc"),
            codex_home: base.join("home"),
            cwd: base.join("project/inner"),
        };
        let executor = FileExecutor::in_process(Files::default());
        let memory = MemoryBudget::new(64 << 20, Duration::ZERO).share();
        let reader = Reader::new(&executor, memory);
        let paths = [vec!["m".to_owned()]];
        let sources = || {
            let config = directories.config(&reader, &paths).unwrap();
            let shorter = |source: &str| source.replace(base.to_str().unwrap(), "");
            let sources = config.layers.iter().map(|layer| shorter(&layer.source));
            (sources.collect::<Vec<_>>(), config.cloud_insertion_index)
        };
        assert_eq!(sources(), (Vec::new(), 0));
        write(&base.join("project/.codex/config.toml"), "m = 3");
        write(&base.join("project/inner/.codex/config.toml"), "m = 4");
        write(&base.join("home/config.toml"), "m = 2");
        assert_eq!(sources(), (vec!["user (/home/config.toml)".to_owned()], 0));
        let trusted = format!(
            "[projects.{:?}]\ntrust_level = 'trusted'",
            base.join("project")
        );
        write(&base.join("home/config.toml"), &format!("m = 2\n{trusted}"));
        write(&base.join("project/.git/HEAD"), "");
        write(&base.join("etc/config.toml"), "m = 1");
        write(&base.join("etc/managed_config.toml"), "m = 5");
        write(&base.join("etc/requirements.toml"), "m = 6\nother = 7");
        let all = [
            "system (/etc/config.toml)",
            "user (/home/config.toml)",
            "project (/project/.codex/config.toml)",
            "project (/project/inner/.codex/config.toml)",
            "legacy managed_config.toml (/etc/managed_config.toml)",
        ];
        assert_eq!(sources(), (all.map(str::to_owned).to_vec(), 1));
        let requirements = directories.requirements(&reader, &paths).unwrap();
        assert_eq!(requirements.layers[0].toml, "m = 6\n");
        assert_eq!(requirements.cloud_insertion_index, 1);
        let none = directories.requirements(&reader, &[]).unwrap();
        assert_eq!(none, ConfigLayers::default());
        // A link of a project is not followed.
        let inner = base.join("project/inner/.codex/config.toml");
        std::fs::remove_file(&inner).unwrap();
        std::os::unix::fs::symlink(base.join("etc/requirements.toml"), &inner).unwrap();
        assert_eq!(sources().0.len(), 4);
    }
}
