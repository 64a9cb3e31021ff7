"""Walks through the network: joining, finding, publishing, crawling."""
