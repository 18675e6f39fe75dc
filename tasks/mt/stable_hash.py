"""Draws that depend on a text only, equal in every process and on every day."""

from __future__ import annotations

import hashlib


def Uniform(*parts: str) -> float:
  """A number in [0, 1), as good as random for different parts.

  Args:
    *parts: what the number is of, such as a purpose and a text.

  Returns:
    The number.
  """
  digest = hashlib.blake2b('\0'.join(parts).encode(), digest_size=8).digest()
  # 53 bits are what a float holds exactly.
  return (int.from_bytes(digest, 'little') >> 11) / 2**53
