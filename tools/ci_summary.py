"""Counts the test cases of a `bazel test` run.

Bazel itself counts targets only. This reads the events of one run
(`--build_event_json_file`), so results that earlier runs left behind cannot
slip in, and the test.xml files that the events name.

  python3 tools/ci_summary.py --bazel_status=$? events.json

prints what failed and, last, `N passed, N failed`. The exit status is Bazel's,
or 1 if that was 0 although something failed.
"""

# No newer Python than 3.7 is needed, and no package: .ci/run may find any.
from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree
from collections.abc import Iterable


@dataclasses.dataclass
class Counts:
  """Test cases by outcome, and a line on each failure."""

  passed: int = 0
  failed: int = 0
  skipped: int = 0
  failures: list[str] = dataclasses.field(default_factory=list)

  def Fail(self, message: str) -> None:
    self.failed += 1
    self.failures.append(message)


def CountCases(test_xml: str, label: str) -> Counts:
  """Counts the cases of one test.xml.

  Args:
    test_xml: the text of the file, as absltest or Bazel writes it.
    label: the target, for the failure lines.

  Returns:
    Counts; an unreadable file has no cases.
  """
  counts = Counts()
  try:
    root = xml.etree.ElementTree.fromstring(test_xml)
  except xml.etree.ElementTree.ParseError:
    return counts
  for case in root.iter('testcase'):
    problems = [*case.iter('failure'), *case.iter('error')]
    if problems:
      name = f'{case.get("classname", "")}.{case.get("name", "?")}'
      reason = (problems[0].get('message') or '').strip().partition('\n')[0]
      counts.Fail(f'{label}: {name.lstrip(".")}: {reason or "no message"}')
    elif case.get('status') == 'notrun' or case.find('skipped') is not None:
      counts.skipped += 1
    else:
      counts.passed += 1
  return counts


def CountRun(events: Iterable[str], bazel_status: int) -> Counts:
  """Counts the cases of a run.

  A target that failed, timed out or was not built counts as at least one
  failure, and so does a run that Bazel says failed.

  Args:
    events: lines of the file that --build_event_json_file names.
    bazel_status: Bazel's exit status.

  Returns:
    Counts over all test targets.
  """
  total = Counts()
  targets = set()  # Test targets that were to run.
  results = {}  # (label, run, shard) -> (attempt, result): the last attempt's.
  for line in events:
    event = _ParseEvent(line)
    kind, ids = next(iter(event.get('id', {}).items()), ('', {}))
    if kind == 'targetConfigured' and 'testSize' in event.get('configured', {}):
      targets.add(ids['label'])
    elif kind == 'testResult' and 'testResult' in event:
      targets.add(ids['label'])
      key = (ids['label'], ids.get('run', 1), ids.get('shard', 1))
      attempt = ids.get('attempt', 1)
      if key not in results or attempt > results[key][0]:
        results[key] = (attempt, event['testResult'])

  for (label, _, _), (_, result) in sorted(results.items()):
    status = result.get('status', 'NO_STATUS')
    counts = CountCases(_ReadXml(result), label)
    if status != 'PASSED' and not counts.failed:
      counts.Fail(f'{label}: {status} with no failed case; see its test.log')
    total.passed += counts.passed
    total.failed += counts.failed
    total.skipped += counts.skipped
    total.failures += counts.failures
  for label in sorted(targets - {label for label, _, _ in results}):
    total.Fail(f'{label}: did not run (see the build errors above)')
  if bazel_status != 0 and not total.failed:
    total.Fail(f'Bazel ended with status {bazel_status} (see above)')
  return total


def _ParseEvent(line: str) -> dict:
  try:
    return json.loads(line)
  except ValueError:  # The last line may be cut off if Bazel was killed.
    return {}


def _ReadXml(result: dict) -> str:
  for output in result.get('testActionOutput', []):
    if output.get('name') == 'test.xml':
      path = urllib.request.url2pathname(
        urllib.parse.urlsplit(output['uri']).path
      )
      try:
        return pathlib.Path(path).read_text(encoding='utf-8', errors='replace')
      except OSError:
        return ''
  return ''


def main(argv: list[str]) -> int:
  parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
  parser.add_argument('--bazel_status', type=int, required=True)
  parser.add_argument('events', type=pathlib.Path)
  args = parser.parse_args(argv)
  try:
    events = args.events.read_text(encoding='utf-8').splitlines()
  except FileNotFoundError:  # Bazel did not start.
    events = []
  counts = CountRun(events, args.bazel_status)
  for failure in counts.failures:
    print(f'FAILED {failure}')
  if counts.skipped:
    print(f'{counts.skipped} skipped')
  print(f'{counts.passed} passed, {counts.failed} failed')
  return args.bazel_status or (1 if counts.failed else 0)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
