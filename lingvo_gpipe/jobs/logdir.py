"""The log directory: where each file of a run is.

params.txt            all params, as Params.FromText reads them
plan.json             the partitions
model_analysis.json   variables and number of parameters (inspect_model)
results.json          metrics of the evaluated datasets
train/                checkpoints, TensorBoard, metrics.jsonl of all steps,
                      devices.jsonl of partitions and devices,
                      dev_metrics.jsonl of evaluations of the dev data
assets/               what checkpoints are understood by, such as a vocabulary
workers/              logs of --local_workers
restarts.jsonl        workers that were lost, and from where the run went on
eval_dev/ eval_test/  TensorBoard; evaluated.jsonl, what an evaler has done
decoder_test/         what was decoded; decoded.jsonl, what a decoder has done
"""

from __future__ import annotations

import json
import os
from typing import Any

from lingvo_gpipe import atomic_file, user_error
from lingvo_gpipe.train import checkpoint, summaries


class LogDir:
  """Paths below one directory.

  Args:
    path: of the directory, which need not exist yet.
  """

  def __init__(self, path: str):
    self.path = os.path.abspath(os.path.expanduser(path))
    self.train_dir = os.path.join(self.path, 'train')
    self.workers_dir = os.path.join(self.path, 'workers')
    self.step_log = os.path.join(self.train_dir, 'metrics.jsonl')
    self.device_log = os.path.join(self.train_dir, 'devices.jsonl')

  def EvalDir(self, dataset: str) -> str:
    """Where the summaries of a dataset go, such as 'test'."""
    return os.path.join(self.path, f'eval_{dataset}')

  def DecoderDir(self, dataset: str) -> str:
    """Where what is decoded of a dataset goes, such as 'test'."""
    return os.path.join(self.path, f'decoder_{dataset}')

  def AssetPath(self, name: str) -> str:
    """Where a file lies without which checkpoints say nothing."""
    return os.path.join(self.path, 'assets', name)

  def Create(self, *folders: str) -> None:
    """Makes the directory and folders in it, and tries to write there.

    Args:
      *folders: paths, such as `train_dir`.

    Raises:
      UserError: where that fails.
    """
    with user_error.Expected(checkpoint.CheckpointError):
      for folder in (self.path, *folders):
        checkpoint.CheckWritable(folder)

  def PathOf(self, name: str) -> str:
    """Where a file of the run lies."""
    return os.path.join(self.path, name)

  def WriteText(self, name: str, text: str) -> None:
    """Writes a text file; who reads it sees the old or the new one whole."""
    with atomic_file.Writing(os.path.join(self.path, name)) as f:
      f.write(text)

  def WriteJson(self, name: str, values: Any) -> None:
    """Writes a JSON file; who reads it sees the old or the new one whole."""
    summaries.WriteJson(os.path.join(self.path, name), values)

  def ReadJson(self, name: str) -> Any:
    """The value that WriteJson wrote; None where there is no such file."""
    try:
      with open(os.path.join(self.path, name), encoding='utf-8') as f:
        return json.load(f)
    except FileNotFoundError:
      return None
